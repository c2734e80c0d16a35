// Emulators of FCM and APNs for tests of programs that send push messages.
'use strict';

const { EmulatorError } = require('./control');
const { ApnsEmulator, FcmEmulator } = require('./emulator');

module.exports = { ApnsEmulator, EmulatorError, FcmEmulator };
