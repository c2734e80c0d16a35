//! How much of an audience a fleet keeps unsettled: as little as keeps the push service busy.
//!
//! It climbs: while work waits only because the window is full, the window grows by half, and stays grown only if
//! more was settled per second than before; otherwise it steps back and holds for a while. So it settles near rate times
//! latency, and a crash behind a fast push service leaves few deliveries in doubt.

use std::time::Duration;

/// Shortest time over which a rate is measured.
const SPAN_MIN: Duration = Duration::from_millis(200);
/// A growth that does not add this share to the rate is taken back.
const GAIN_MIN: f64 = 1.08;
/// Measurements to hold after a growth that did not pay.
const HOLD_SPANS: u32 = 10;

/// The window of one fleet, in deliveries.
#[derive(Debug)]
pub(crate) struct Window {
    floor: u64,
    cap: u64,
    limit: u64,
    last_paying: u64,
    best_rate: f64,
    hold: u32,
    full: bool,
    began: Duration,
    began_settled: u64,
    peak: u64,
}

impl Window {
    /// Starts at the floor; `now` is any running time.
    pub(crate) fn new(floor: u64, cap: u64, now: Duration) -> Self {
        let floor = floor.min(cap);
        Self {
            floor,
            cap,
            limit: floor,
            last_paying: floor,
            best_rate: 0.0,
            hold: 0,
            full: false,
            began: now,
            began_settled: 0,
            peak: 0,
        }
    }

    /// Gives the most deliveries to have unsettled.
    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Notes that work waited because the window was full.
    pub(crate) const fn note_full(&mut self) {
        self.full = true;
    }

    /// Measures when it is time: `settled` counts from the start, `unsettled` is what is out now.
    pub(crate) fn observe(&mut self, now: Duration, settled: u64, unsettled: u64) {
        self.peak = self.peak.max(unsettled);
        let span = now.saturating_sub(self.began);
        let turned = settled - self.began_settled;
        if span < SPAN_MIN || (self.full && turned < self.limit) {
            return;
        }
        let rate = turned as f64 / span.as_secs_f64();
        if self.full {
            self.climb(rate)
        } else {
            self.ease()
        }
        (self.began, self.began_settled, self.full, self.peak) = (now, settled, false, unsettled);
    }

    fn climb(&mut self, rate: f64) {
        if self.hold > 0 {
            self.hold -= 1;
            self.best_rate = rate;
        } else if rate > self.best_rate * GAIN_MIN {
            self.best_rate = rate;
            self.last_paying = self.limit;
            self.limit = (self.limit + self.limit / 2).min(self.cap);
        } else {
            self.limit = self.last_paying;
            self.best_rate = rate / GAIN_MIN / GAIN_MIN;
            self.hold = HOLD_SPANS;
        }
    }

    /// Comes back from a height that is no longer needed.
    fn ease(&mut self) {
        if self.peak < self.limit / 2 {
            self.limit = (self.limit - self.limit / 4).max(self.floor);
            self.last_paying = self.limit;
            (self.best_rate, self.hold) = (0.0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets a service of `latency_ms` that can do at most `rate_max` a second work for a while with a full window.
    fn settle_for(window: &mut Window, seconds: u64, latency_ms: f64, rate_max: f64) {
        let mut settled = 0.0;
        for tick in 1..=seconds * 20 {
            let now = Duration::from_millis(tick * 50);
            settled += (window.limit() as f64 / latency_ms * 1_000.0).min(rate_max) / 20.0;
            window.note_full();
            window.observe(now, settled as u64, window.limit());
        }
    }

    #[test]
    fn a_service_with_latency_gets_a_window_of_about_rate_times_latency() {
        let mut window = Window::new(4_000, 100_000, Duration::ZERO);
        settle_for(&mut window, 60, 500.0, 50_000.0);
        assert!((20_000..60_000).contains(&window.limit()), "{}", window.limit());
    }

    #[test]
    fn a_fast_service_leaves_the_window_small() {
        let mut window = Window::new(4_000, 100_000, Duration::ZERO);
        settle_for(&mut window, 60, 2.0, 100_000.0);
        assert!(window.limit() <= 9_000, "{}", window.limit());
    }

    #[test]
    fn a_window_that_is_not_needed_shrinks_to_its_floor() {
        let mut window = Window::new(4_000, 100_000, Duration::ZERO);
        settle_for(&mut window, 60, 1_000.0, 1_000_000.0);
        assert!(window.limit() > 50_000);
        for tick in 1..100 {
            window.observe(Duration::from_secs(60 + tick), 10_000_000, 10);
        }
        assert_eq!(window.limit(), 4_000);
    }
}
