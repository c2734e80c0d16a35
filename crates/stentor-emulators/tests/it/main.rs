//! The emulators over real sockets: h2 at frame level, reqwest for whole requests.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use stentor_emulators::Engine;

/// What the emulators of these tests speak HTTP/2 with; the tests in `../frames` are the same with frames.
const ENGINE: Engine = Engine::H2;

mod apns;
mod arrival;
mod control;
mod faults;
mod fcm;
mod frames;
mod kill;
mod observer;
mod provider_token;
mod rig;
mod sink;
mod tls;
mod topics;
mod whims;
