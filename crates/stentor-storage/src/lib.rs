//! The Store and Queue ports on real engines, and the suites that judge them.
//!
//! SQL appears in this crate only. An engine is a folder; it is done when `conformance` passes for it.
#![forbid(unsafe_code)]

use std::time::Duration;

/// How long after its due time a message with ttl 0 may wait for its one attempt before a sweep ends it.
pub const ZERO_TTL_GRACE: Duration = Duration::from_secs(60);

/// The epoch of a chunk's first lease.
const FIRST_EPOCH: u32 = 1;

pub mod conformance;
pub mod memory;
pub mod seal;
pub mod sqlite;
mod turns;
