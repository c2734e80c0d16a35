//! Clocks: the machine's own, clocks that differ from it, and how two of them are compared over a link.

pub mod estimate;
pub mod inquiry;
pub mod party;
pub mod sntp;
pub mod trial;

use crate::monotonic::now_ns;

const BILLION: i128 = 1_000_000_000;

/// A clock that differs from `CLOCK_MONOTONIC` of its process in a stated way. A time namespace gives a process another
/// beginning of that clock, but no other speed: the speed is applied here, where the clock is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drifting {
    /// The offset added to each reading, in nanoseconds, where there are no time namespaces.
    pub offset_ns: i64,
    /// The rate by which it is too fast, in parts per billion.
    pub fast_ppb: i64,
    /// The start of this speed, by the process' own monotonic clock.
    pub since_ns: u64,
}

impl Drifting {
    /// Reads it.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.reading(now_ns())
    }

    /// Returns its reading at an instant of the process' monotonic clock.
    #[must_use]
    pub fn reading(&self, monotonic_ns: u64) -> i64 {
        let since = i128::from(monotonic_ns) - i128::from(self.since_ns);
        let reading = i128::from(monotonic_ns) + since * i128::from(self.fast_ppb) / BILLION;
        whole(reading + i128::from(self.offset_ns))
    }

    /// The instant of the process' monotonic clock at which it shows this.
    #[must_use]
    pub fn instant(&self, reading: i64) -> i64 {
        let since = i128::from(reading) - i128::from(self.offset_ns) - i128::from(self.since_ns);
        whole(i128::from(self.since_ns) + since * BILLION / (BILLION + i128::from(self.fast_ppb)))
    }
}

/// Clocks that run for less than 292 years fit.
fn whole(nanoseconds: i128) -> i64 {
    i64::try_from(nanoseconds).unwrap_or(if nanoseconds < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_instant_of_a_reading_is_found_again(
            monotonic_ns in 0..1_u64 << 50,
            since_ns in 0..1_u64 << 50,
            offset_ns in -1_i64 << 40..1 << 40,
            fast_ppb in -1_000_000..1_000_000_i64,
        ) {
            let clock = Drifting { offset_ns, fast_ppb, since_ns };
            let found = clock.instant(clock.reading(monotonic_ns));
            prop_assert!((found - monotonic_ns.cast_signed()).abs() <= 2);
        }
    }

    #[test]
    fn a_clock_that_is_fast_by_fifty_millionths_gains_fifty_microseconds_a_second() {
        let clock = Drifting { offset_ns: 7, fast_ppb: 50_000, since_ns: 1_000_000_000 };
        assert_eq!(clock.reading(2_000_000_000), 2_000_050_007);
    }
}
