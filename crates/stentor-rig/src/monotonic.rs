//! The machine's own clock.

use rustix::time::{ClockId, clock_gettime};

/// The clock of all measurements, `CLOCK_MONOTONIC`, in nanoseconds.
#[must_use]
pub(crate) fn now_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Returns the offset from [`now_ns`] to the time of day since 1970, in nanoseconds.
pub(crate) fn epoch_ns() -> u64 {
    nanoseconds(ClockId::Realtime).saturating_sub(now_ns())
}

fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
