//! The window of a lane: the deliveries of audiences that it keeps unsettled, as few as keep the push service busy.
//!
//! A delivery is unsettled for one turnaround: the push service's shortest recent answer time, plus the store's time for a lease and a
//! settlement. At least the deliveries that the sender's best rate achieves in one turnaround are in flight. The window is twice that plus
//! two chunks. It thus grows as long as growth increases the rate, and a crash with a fast push service leaves few deliveries in doubt.
//! Both numbers come from the sender's congestion control, so that nothing is estimated twice. If the sender has more than that in flight,
//! the window is twice the number in flight: a rate is known late, and until then only the sender knows its need.
//!
//! After a crash the window begins with one chunk and doubles each time that a full window is settled. A process that crashes repeatedly
//! before it settles anything thus puts few deliveries in doubt each time, and one that survives has its full window after a few
//! turnarounds. The number that all lanes together have in doubt during this time is limited as well (`budget`), and so is the part of a
//! small audience (`audiences`).

use std::time::Duration;

/// Shortest time between two measurements.
pub(crate) const LOOK_MIN: Duration = Duration::from_millis(10);
/// Size of the window, in turnarounds at the best rate.
const GAIN: f64 = 2.0;

/// The window of one lane, in deliveries.
#[derive(Debug)]
pub(crate) struct LaneWindow {
    spare: u64,
    floor: u64,
    cap: u64,
    limit: u64,
    /// Upper bound of the limit while the window grows after a crash.
    ceiling: u64,
    /// Number settled when the ceiling was last raised.
    raised_settled: u64,
    looked: Duration,
}

impl LaneWindow {
    /// Creates a window at its floor, half of which is added to the need by rate; `now` is any running time.
    pub(crate) fn new(floor: u64, cap: u64, now: Duration) -> Self {
        let floor = floor.min(cap);
        Self { spare: floor / 2, floor, cap, limit: floor, ceiling: u64::MAX, raised_settled: 0, looked: now }
    }

    /// Starts with a ceiling of `first` instead, which grows with settled deliveries.
    pub(crate) fn behind_crash(self, first: u64) -> Self {
        Self { ceiling: first.max(1), ..self }
    }

    /// Raises the ceiling by settled deliveries; `settled` counts from the start.
    pub(crate) const fn raise(&mut self, settled: u64) {
        while self.ceiling < self.cap && settled - self.raised_settled >= self.ceiling {
            self.raised_settled += self.ceiling;
            self.ceiling *= 2;
        }
    }

    /// Returns the most deliveries to have unsettled.
    pub(crate) const fn limit(&self) -> u64 {
        if self.limit < self.ceiling { self.limit } else { self.ceiling }
    }

    /// Returns true if the window may grow.
    pub(crate) const fn may_grow(&self) -> bool {
        self.limit() < self.cap
    }

    /// Returns true if a measurement is due.
    pub(crate) fn is_due(&self, now: Duration) -> bool {
        now.saturating_sub(self.looked) >= LOOK_MIN
    }

    /// Fits the window to the sender: its best rate of answers per second times the turnaround, or its requests in flight.
    pub(crate) fn fit(&mut self, now: Duration, sender: Flow, turnaround: Duration) {
        let busy = sender.rate_per_second as f64 * turnaround.as_secs_f64();
        let wanted = (busy.max(sender.inflight as f64) * GAIN) as u64 + self.spare;
        self.limit = wanted.clamp(self.floor, self.cap);
        self.looked = now;
    }
}

/// Figures reported by the sender.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flow {
    /// The best recent rate of answers, per second; zero before one is known.
    pub(crate) rate_per_second: u64,
    /// Requests sent and not answered.
    pub(crate) inflight: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(rate_per_second: u64, inflight: u64, latency_ms: u64) -> u64 {
        let mut window = LaneWindow::new(4_000, 100_000, Duration::ZERO);
        window.fit(LOOK_MIN, Flow { rate_per_second, inflight }, Duration::from_millis(latency_ms));
        window.limit()
    }

    #[test]
    fn a_service_with_latency_gets_a_window_of_about_twice_rate_times_latency() {
        assert_eq!(fitted(50_000, 25_000, 500), 52_000);
    }

    #[test]
    fn a_fast_service_leaves_the_window_small() {
        assert_eq!(fitted(100_000, 200, 2), 4_000);
    }

    #[test]
    fn what_the_sender_has_in_flight_makes_room_for_twice_as_much_before_a_rate_is_known() {
        assert_eq!(fitted(0, 4_000, 500), 10_000);
        assert_eq!(fitted(0, 90_000, 500), 100_000);
    }

    #[test]
    fn a_window_is_looked_at_now_and_then() {
        let mut window = LaneWindow::new(4_000, 100_000, Duration::ZERO);
        window.fit(Duration::from_millis(10), Flow::default(), Duration::ZERO);
        assert!(!window.is_due(Duration::from_millis(15)) && window.is_due(Duration::from_millis(20)));
    }

    #[test]
    fn behind_a_crash_the_window_is_one_chunk_until_one_is_settled_and_doubles_with_progress() {
        let mut window = LaneWindow::new(4_000, 100_000, Duration::ZERO).behind_crash(1_000);
        let mut limits = Vec::new();
        for settled in [0, 999, 1_000, 2_999, 3_000, 7_000] {
            // The sender alone would allow more.
            fit_to_much(&mut window, Duration::from_millis(settled));
            window.raise(settled);
            limits.push(window.limit());
        }
        assert_eq!(limits, [1_000, 1_000, 2_000, 2_000, 4_000, 8_000]);
        assert!(window.may_grow());
        window.raise(200_000);
        assert_eq!((window.limit(), window.may_grow()), (100_000, false));
    }

    #[test]
    fn behind_a_crash_a_slow_service_has_its_whole_window_within_nine_turnarounds() {
        let mut window = LaneWindow::new(4_000, 100_000, Duration::ZERO).behind_crash(1_000);
        let mut settled = 0;
        for turnaround in 1..=9 {
            fit_to_much(&mut window, Duration::from_millis(500 * turnaround));
            settled += window.limit();
            window.raise(settled);
        }
        assert_eq!(window.limit(), 100_000);
    }

    fn fit_to_much(window: &mut LaneWindow, now: Duration) {
        window.fit(now, Flow { rate_per_second: 0, inflight: 50_000 }, Duration::from_millis(500));
    }

    #[test]
    fn a_window_that_is_not_needed_shrinks_to_its_floor() {
        let mut window = LaneWindow::new(4_000, 100_000, Duration::ZERO);
        fit_to_much(&mut window, LOOK_MIN);
        assert_eq!(window.limit(), 100_000);
        window.fit(2 * LOOK_MIN, Flow::default(), Duration::from_secs(1));
        assert_eq!(window.limit(), 4_000);
    }
}
