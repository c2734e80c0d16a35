//! Bounds of the gateway.

use std::time::Duration;

/// Longest time that a message of a device may wait for its app: four weeks, as GCM and FCM have it.
pub const UPSTREAM_TTL_MAX: Duration = Duration::from_secs(28 * 24 * 3_600);
/// Arrivals from devices that a listener may fall behind before it must look at the store.
pub const ARRIVALS_MAX_COUNT: usize = 1_024;

/// Deliveries that a session has been given and that are not confirmed yet, unless its protocol asks for fewer.
pub const WINDOW_MAX_COUNT: usize = 100;
/// Deliveries that may wait for one device: when more do, they are dropped and it is told that messages were deleted.
pub const PENDING_MAX_COUNT: usize = 1_000;
/// Receipts that are written in one transaction.
pub const RECEIPTS_AT_ONCE_MAX_COUNT: usize = 32_768;
/// Settled chunks that wait to be given to connected devices; for what finds no place the devices look themselves.
pub const SETTLED_CHUNKS_MAX_COUNT: usize = 4_096;
/// Messages whose content is remembered.
pub const CONTENTS_MAX_COUNT: usize = 4_096;
/// Wait before receipts that could not be written are tried again.
pub const RECEIPT_RETRY: Duration = Duration::from_millis(200);
/// Wait before what waits for a device is looked up again when the store could not tell.
pub const LOOK_UP_RETRY: Duration = Duration::from_millis(500);
/// Messages of devices that one connection, stream or webhook of an app is handed before it settles any: 100, as CCS has it.
pub const UPSTREAM_WINDOW_MAX_COUNT: usize = 100;
/// Messages of devices that are looked at in one read.
pub const UPSTREAM_LOOK_PAGE_MAX_COUNT: usize = 200;
/// Reads of one look for messages that nobody holds.
pub const UPSTREAM_LOOK_MAX_PAGES: usize = 8;
/// Time from one look for messages of devices to the next, where nobody tells of any.
pub const UPSTREAM_LOOK_INTERVAL: Duration = Duration::from_secs(1);
