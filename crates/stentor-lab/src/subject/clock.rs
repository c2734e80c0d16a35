//! The clock of samples: `CLOCK_MONOTONIC`, which every language can read and all processes of a machine share.

use rustix::time::{ClockId, clock_gettime};

const NANOSECONDS: i64 = 1_000_000_000;

/// Returns the monotonic time in nanoseconds.
#[must_use]
pub fn monotonic_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * NANOSECONDS + now.tv_nsec
}

/// Returns nanoseconds since 1970, for dates only; not used for measurements.
#[must_use]
pub fn epoch_ns() -> i64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec * NANOSECONDS + now.tv_nsec
}
