//! Limits of the gateway.

use std::time::Duration;

/// Longest time to live of a device's message to its app: four weeks, as in GCM and FCM.
pub const UPSTREAM_TTL_MAX: Duration = Duration::from_secs(28 * 24 * 3_600);
/// Arrivals of upstream messages that a listener may miss before it must read the store.
pub const ARRIVALS_MAX_COUNT: usize = 1_024;

/// Changes of its own topics and tokens that a device may make in a day.
pub const DEVICE_CHANGES_PER_DAY_MAX_COUNT: u32 = 4_096;
/// Devices for which the changes of the day are counted.
pub const DEVICE_CHANGES_KNOWN_MAX_COUNT: usize = 262_144;

/// Unconfirmed deliveries of a session, unless its protocol sets a lower limit.
pub const WINDOW_MAX_COUNT: usize = 100;
/// Initial limit of a process for unconfirmed deliveries over all sessions.
pub const DOUBTS_MAX_COUNT: usize = 1_250;
/// Increase of this limit for each receipt within [`PROMPT_RECEIPT_MAX`].
pub const DOUBTS_MORE_PER_PROMPT_RECEIPT: usize = 2;
/// Longest time from a delivery to its receipt that counts as prompt.
pub const PROMPT_RECEIPT_MAX: Duration = Duration::from_millis(500);
/// Time for which an unconfirmed delivery counts.
pub const UNCONFIRMED_COUNTED_FOR: Duration = Duration::from_secs(10);
/// Age of a process from which on only the windows of its sessions limit deliveries.
pub const DOUBTS_COUNTED_FOR: Duration = Duration::from_secs(60);
/// Interval of the checks for room made by elapsed time.
pub const DOUBTS_LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// Deliveries that may wait for one device. Beyond it they are dropped, and the device is notified that messages were deleted.
pub const PENDING_MAX_COUNT: usize = 1_000;
/// Waiting deliveries kept in memory over all sessions. Beyond it the mailbox is read again.
pub const BACKLOG_MAX_COUNT: usize = 1_048_576;
/// Time for which a session uses its known waiting deliveries before it reads its mailbox again.
pub const BACKLOG_FRESH: Duration = Duration::from_secs(5);
/// Recently disconnected devices with waiting deliveries kept in memory.
pub const PARKED_DEVICES_MAX_COUNT: usize = 65_536;
/// Devices combined into one read of the store.
pub const READS_AT_ONCE_MAX_COUNT: usize = 256;
/// Concurrent reads of one kind. Devices that connect during them are gathered for the next one.
pub const READS_MAX_COUNT: usize = 2;
/// Receipts that are written in one transaction.
pub const RECEIPTS_AT_ONCE_MAX_COUNT: usize = 32_768;
/// Settled chunks queued for connected devices. If the queue is full, the devices read the ledger themselves.
pub const SETTLED_CHUNKS_MAX_COUNT: usize = 4_096;
/// Messages with cached content.
pub const CONTENTS_MAX_COUNT: usize = 4_096;
/// Messages of paused campaigns kept in memory; every delivery is checked against them.
pub const HELD_MAX_COUNT: usize = 65_536;
/// Wait before a failed write of receipts is retried.
pub const RECEIPT_RETRY: Duration = Duration::from_millis(200);
/// Failed writes of a device's receipts, while others succeed, after which they are given up.
pub const RECEIPT_TRIES_MAX_COUNT: u32 = 5;
/// Longest time without a successful write of receipts before the server reports that it is not ready.
pub const RECEIPTS_STALLED_MAX: Duration = Duration::from_secs(5);
/// Wait before a failed look-up of waiting deliveries is retried.
pub const LOOK_UP_RETRY: Duration = Duration::from_millis(500);
/// Interval of the checks for silent devices, which is also the largest delay of a disconnect.
pub const SILENCE_LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Longest time until the next check of a device.
pub const SILENCE_LOOK_LATEST: Duration = Duration::from_secs(60);
/// Unsettled messages of devices that one connection, stream or webhook of an app may hold: 100, as in CCS.
pub const UPSTREAM_WINDOW_MAX_COUNT: usize = 100;
/// Divisor of that limit for the messages of a single device at a webhook.
pub const UPSTREAM_DEVICE_SHARE: usize = 8;
/// Messages of devices examined in one read.
pub const UPSTREAM_LOOK_PAGE_MAX_COUNT: usize = 200;
/// Reads of one scan for messages without a consumer.
pub const UPSTREAM_LOOK_MAX_PAGES: usize = 8;
/// Interval of the scans for messages of devices, when no arrival is announced.
pub const UPSTREAM_LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Largest stanza of an app server: a message may be 4 KiB of data, and escapes make it longer.
pub const CCS_STANZA_MAX_BYTES: usize = 128 * 1_024;
/// Most elements of a stanza of an app server: a message has three, and even a short element costs hundreds of bytes.
pub const CCS_STANZA_ELEMENTS_MAX_COUNT: usize = 256;
/// Largest stanza before the login, which is a name and a key.
pub const CCS_LOGIN_STANZA_MAX_BYTES: usize = 4 * 1_024;
/// Most elements of such a stanza; a login has one.
pub const CCS_LOGIN_ELEMENTS_MAX_COUNT: usize = 8;
/// Deepest element within a stanza of an app server.
pub const CCS_STANZA_MAX_DEPTH: usize = 16;
/// Longest name or attribute of an element; longer text comes in pieces.
pub const CCS_TOKEN_MAX_BYTES: usize = 8 * 1_024;
/// Bytes read from an app server's connection at once.
pub const CCS_READ_BUFFER_BYTES: usize = 4 * 1_024;
/// Messages of one app server being written to disk. At this number the connection is not read any further.
pub const CCS_SENDS_MAX_COUNT: usize = 100;
/// Keys that an app server may try on one connection.
pub const CCS_LOGIN_ATTEMPTS_MAX_COUNT: usize = 3;
/// Longest time until an app server has logged in.
pub const CCS_LOGIN_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of a write to an app server.
pub const CCS_WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest silence of an app server, which is pinged after half of it.
pub const CCS_IDLE: Duration = Duration::from_secs(600);
/// Time for an app server to complete work in progress when the server stops.
pub const CCS_DRAIN: Duration = Duration::from_secs(5);
