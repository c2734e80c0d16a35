//! The system's clock, the only reader of time in the server, and a clock that follows the store's, which several servers share.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stentor_core::ports::clock::Clock;
use stentor_core::time::Timestamp;

/// The value of `beginning_ms` while the clock follows no other.
const NONE: i64 = i64::MIN;
/// Smallest correction that is logged.
const LOGGED_MS: i64 = 1_000;

/// The system's time.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let millis = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(span) => i64::try_from(span.as_millis()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |span| -span),
        };
        Timestamp::from_millis(millis)
    }
}

/// A clock that shows the system's time until it first receives the store's, and follows the store's from then on. Times written to a
/// shared store must be due for the other servers as well, even if this system's clock is wrong or the server dies before it is corrected.
///
/// Between two readings of the store's clock it counts the elapsed uptime, so that a step of the system's clock has no effect. A reading
/// moves it only as far as it is proven wrong: a reply that took long proves little.
#[derive(Debug)]
pub struct ServerClock {
    /// The machine's uptime at the beginning.
    began: Duration,
    /// The time of the followed clock at the beginning, in milliseconds; [`NONE`] while there is none.
    beginning_ms: AtomicI64,
}

impl Default for ServerClock {
    fn default() -> Self {
        Self { began: uptime(), beginning_ms: AtomicI64::new(NONE) }
    }
}

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        match self.beginning_ms.load(Ordering::Relaxed) {
            NONE => SystemClock.now(),
            beginning => Timestamp::from_millis(beginning + millis(self.passed())),
        }
    }

    fn follow(&self, shown: Timestamp, span: Duration) {
        let (passed, now) = (millis(self.passed()), self.now());
        let right = now.as_millis().clamp(shown.as_millis(), shown.as_millis().saturating_add(millis(span)));
        let by = right - now.as_millis();
        if by.abs() >= LOGGED_MS {
            tracing::warn!(
                seconds = by / 1_000,
                "this server's clock differs from the store's clock, which it follows"
            );
        }
        self.beginning_ms.store(right - passed, Ordering::Relaxed);
    }
}

impl ServerClock {
    /// Returns how much time has passed since the beginning.
    fn passed(&self) -> Duration {
        uptime().saturating_sub(self.began)
    }
}

/// Returns the machine's uptime including suspension, because time passes for the other servers during it.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn uptime() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Returns how long the process has been running, as far as the system counts that.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn uptime() -> Duration {
    static BEGAN: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    BEGAN.elapsed()
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// Returns the time of the machine to the nanosecond, for spans: a collector compares it with those of other machines.
pub(crate) fn machine_time() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    fn system() -> i64 {
        SystemClock.now().as_millis()
    }

    #[test]
    fn it_shows_the_systems_time_until_it_hears_of_another_and_that_ones_from_then_on() {
        let clock = ServerClock::default();
        let (before, shows, after) = (system(), clock.now().as_millis(), system());
        assert!((before..=after).contains(&shows), "{shows} is not between {before} and {after}");
        // The store's clock is an hour behind, so this one was an hour ahead.
        let (shown, queried_at) = (system() - HOUR_MS, Instant::now());
        clock.follow(Timestamp::from_millis(shown), Duration::ZERO);
        let shows = clock.now().as_millis();
        assert!((shown..=shown + millis(queried_at.elapsed()) + 1).contains(&shows), "{shows} after {shown}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_uptime_counts_as_the_machine_does_with_what_it_slept() {
        let proc_uptime = || {
            let text = std::fs::read_to_string("/proc/uptime").expect("a machine");
            let seconds: f64 = text.split(' ').next().expect("a number").parse().expect("a number");
            Duration::from_secs_f64(seconds)
        };
        // The file has a resolution of a hundredth of a second.
        let (before, shown, after) = (proc_uptime(), uptime(), proc_uptime() + Duration::from_millis(10));
        assert!((before..=after).contains(&shown), "{shown:?} is not between {before:?} and {after:?}");
    }

    #[test]
    fn it_moves_no_further_than_it_is_proved_wrong() {
        let clock = ServerClock::default();
        let hour = Duration::from_secs(3_600);
        // The answer took an hour, so that any time of it may have been meant.
        clock.follow(Timestamp::from_millis(system() - HOUR_MS / 2), hour);
        let before = system();
        let shows = clock.now().as_millis();
        assert!((before - 1..=system() + 1).contains(&shows), "{shows} is not {before}");
        // The whole interval of the reply lies in the past, so the clock is wrong by at least half an hour.
        clock.follow(Timestamp::from_millis(system() - 2 * HOUR_MS), hour);
        let shows = clock.now().as_millis();
        assert!((before - HOUR_MS - 1..=system() - HOUR_MS + 1).contains(&shows), "{shows}");
    }
}
