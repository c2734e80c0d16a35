//! Bounds of the gateway.

use std::time::Duration;

/// Longest time that a message of a device may wait for its app: four weeks, as GCM and FCM have it.
pub const UPSTREAM_TTL_MAX: Duration = Duration::from_secs(28 * 24 * 3_600);
/// Arrivals from devices that a listener may fall behind before it must look at the store.
pub const ARRIVALS_MAX_COUNT: usize = 1_024;

/// Changes of its own topics and tokens that a device makes in a day.
pub const DEVICE_CHANGES_PER_DAY_MAX_COUNT: u32 = 4_096;
/// Devices whose changes of today are remembered.
pub const DEVICE_CHANGES_KNOWN_MAX_COUNT: usize = 262_144;

/// Deliveries that a session has been given and that are not confirmed yet, unless its protocol asks for fewer.
pub const WINDOW_MAX_COUNT: usize = 100;
/// Deliveries given and not confirmed, over all sessions, with which a process begins.
pub const DOUBTS_MAX_COUNT: usize = 1_250;
/// By how many more each receipt lets it have that comes within [`PROMPT_RECEIPT_MAX`].
pub const DOUBTS_MORE_PER_PROMPT_RECEIPT: usize = 2;
/// Longest time from a delivery to its receipt that says that devices confirm at once.
pub const PROMPT_RECEIPT_MAX: Duration = Duration::from_millis(500);
/// A delivery that nobody confirms counts for this long.
pub const UNCONFIRMED_COUNTED_FOR: Duration = Duration::from_secs(10);
/// From this age on a process gives as much as the windows of its sessions allow.
pub const DOUBTS_COUNTED_FOR: Duration = Duration::from_secs(60);
/// Time from one look whether time alone has made room to the next.
pub const DOUBTS_LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// Deliveries that may wait for one device: when more do, they are dropped and it is told that messages were deleted.
pub const PENDING_MAX_COUNT: usize = 1_000;
/// Deliveries of all sessions that are known to wait for room in a window; for more the mailbox is read again.
pub const BACKLOG_MAX_COUNT: usize = 1_048_576;
/// How long a session goes by what it found to wait, before it reads its mailbox again.
pub const BACKLOG_FRESH: Duration = Duration::from_secs(5);
/// Devices that are not connected and of which is known what waits for them, those that were a moment ago.
pub const PARKED_DEVICES_MAX_COUNT: usize = 65_536;
/// Devices whose waiting messages are looked up in one read.
pub const PENDING_DEVICES_AT_ONCE_MAX_COUNT: usize = 256;
/// Such reads at the same time: while they go on, those of devices that come meanwhile gather.
pub const PENDING_READS_MAX_COUNT: usize = 2;
/// Receipts that are written in one transaction.
pub const RECEIPTS_AT_ONCE_MAX_COUNT: usize = 32_768;
/// Settled chunks that wait to be given to connected devices; for what finds no place the devices look themselves.
pub const SETTLED_CHUNKS_MAX_COUNT: usize = 4_096;
/// Messages whose content is remembered.
pub const CONTENTS_MAX_COUNT: usize = 4_096;
/// Messages of paused campaigns that are remembered: they are looked for with every message that is given.
pub const HELD_MAX_COUNT: usize = 65_536;
/// Wait before receipts that could not be written are tried again.
pub const RECEIPT_RETRY: Duration = Duration::from_millis(200);
/// Tries of a device's receipts that fail while others succeed, before they are given up.
pub const RECEIPT_TRIES_MAX_COUNT: u32 = 5;
/// Longest time that receipts may wait while none is written, before the server says that it is not ready.
pub const RECEIPTS_STALLED_MAX: Duration = Duration::from_secs(5);
/// Wait before what waits for a device is looked up again when the store could not tell.
pub const LOOK_UP_RETRY: Duration = Duration::from_millis(500);
/// Time from one look for silent devices to the next: a device is cut off by so much later than it could be.
pub const SILENCE_LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Longest time until a device is looked at again.
pub const SILENCE_LOOK_LATEST: Duration = Duration::from_secs(60);
/// Messages of devices that one connection, stream or webhook of an app is handed before it settles any: 100, as CCS has it.
pub const UPSTREAM_WINDOW_MAX_COUNT: usize = 100;
/// The part of these that a webhook is handed of one device: one in so many.
pub const UPSTREAM_DEVICE_SHARE: usize = 8;
/// Messages of devices that are looked at in one read.
pub const UPSTREAM_LOOK_PAGE_MAX_COUNT: usize = 200;
/// Reads of one look for messages that nobody holds.
pub const UPSTREAM_LOOK_MAX_PAGES: usize = 8;
/// Time from one look for messages of devices to the next, where nobody tells of any.
pub const UPSTREAM_LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Largest stanza of an app server: a message may be 4 KiB of data, and escapes make it longer.
pub const CCS_STANZA_MAX_BYTES: usize = 128 * 1_024;
/// Most elements of a stanza of an app server: a message has three, and each element costs hundreds of bytes, however short it is.
pub const CCS_STANZA_ELEMENTS_MAX_COUNT: usize = 256;
/// Largest stanza of whoever has not logged in: a login is a name and a key.
pub const CCS_LOGIN_STANZA_MAX_BYTES: usize = 4 * 1_024;
/// Most elements of such a stanza; a login has one.
pub const CCS_LOGIN_ELEMENTS_MAX_COUNT: usize = 8;
/// Deepest element within a stanza of an app server.
pub const CCS_STANZA_MAX_DEPTH: usize = 16;
/// Longest name or attribute of an element; longer text comes in pieces.
pub const CCS_TOKEN_MAX_BYTES: usize = 8 * 1_024;
/// What is read of an app server's connection at once.
pub const CCS_READ_BUFFER_BYTES: usize = 4 * 1_024;
/// Messages of one app server that are on their way to the disk; then nothing more is read of it.
pub const CCS_SENDS_MAX_COUNT: usize = 100;
/// Keys that an app server may try on one connection.
pub const CCS_LOGIN_ATTEMPTS_MAX_COUNT: usize = 3;
/// Longest time until an app server has logged in.
pub const CCS_LOGIN_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time until an app server has read what is written to it.
pub const CCS_WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time without a word of an app server, which is pinged after half of it.
pub const CCS_IDLE: Duration = Duration::from_secs(600);
/// What an app server is given to end what is under way when the server stops.
pub const CCS_DRAIN: Duration = Duration::from_secs(5);
