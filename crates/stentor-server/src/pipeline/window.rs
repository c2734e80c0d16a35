//! How much of audiences a lane keeps unsettled: as little as keeps the push service busy.
//!
//! A delivery is unsettled for a turnaround: the push service's shortest answer time lately, and the store's time for a
//! lease and a settlement. What one turnaround brings at the best rate seen lately is out at least; the window is twice
//! that and two chunks, so that it grows as long as growing brings more, and a crash behind a fast push service leaves
//! few deliveries in doubt. Neither number grows because the window does, so it does not chase itself. Where the sender
//! has more in flight than that, the window is twice what is in flight: a rate is known late, and until then the sender
//! alone says how much it needs.
//!
//! Behind a crash the window begins with one chunk and doubles each time that as much as it allows is settled: a process
//! that dies again and again before it has settled anything puts few deliveries in doubt each time, and one that lives
//! has its whole window back after a few turnarounds.

use std::collections::VecDeque;
use std::time::Duration;

/// Shortest time between two looks at what is in flight.
pub(crate) const LOOK_MIN: Duration = Duration::from_millis(10);
/// Shortest time over which a rate is measured.
const SPAN_MIN: Duration = Duration::from_millis(50);
/// Rates remembered.
const RATES_MAX_COUNT: usize = 8;
/// The window in turnarounds at the best rate.
const GAIN: f64 = 2.0;

/// The window of one lane, in deliveries.
#[derive(Debug)]
pub(crate) struct LaneWindow {
    spare: u64,
    floor: u64,
    cap: u64,
    limit: u64,
    /// What the limit is cut to for as long as it grows behind a crash.
    ceiling: u64,
    /// What had been settled when the ceiling was last raised.
    raised_settled: u64,
    looked: Duration,
    rates: VecDeque<f64>,
    began: Duration,
    began_settled: u64,
}

impl LaneWindow {
    /// Starts at the floor, of which half comes on top of what the rate asks for; `now` is any running time.
    pub(crate) fn new(floor: u64, cap: u64, now: Duration) -> Self {
        let floor = floor.min(cap);
        let rates = VecDeque::with_capacity(RATES_MAX_COUNT);
        let (ceiling, raised_settled) = (u64::MAX, 0);
        let (began, began_settled) = (now, 0);
        Self {
            spare: floor / 2,
            floor,
            cap,
            limit: floor,
            ceiling,
            raised_settled,
            looked: now,
            rates,
            began,
            began_settled,
        }
    }

    /// Starts with `first` instead, and grows by what is settled.
    pub(crate) fn behind_crash(self, first: u64) -> Self {
        Self { ceiling: first.max(1), ..self }
    }

    /// Raises the ceiling by what is settled: `settled` counts from the start.
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

    /// Returns whether it may grow.
    pub(crate) const fn may_grow(&self) -> bool {
        self.limit() < self.cap
    }

    /// Returns whether it is time to look.
    pub(crate) fn is_due(&self, now: Duration) -> bool {
        now.saturating_sub(self.looked) >= LOOK_MIN
    }

    /// Makes room for twice what the sender has in flight.
    pub(crate) fn make_room(&mut self, now: Duration, inflight: u64) {
        let wanted = (inflight as f64 * GAIN) as u64 + self.spare;
        self.limit = self.limit.max(wanted.min(self.cap));
        self.looked = now;
    }

    /// Measures when it is time: `settled` counts from the start.
    pub(crate) fn observe(&mut self, now: Duration, settled: u64, turnaround: Duration) {
        let span = now.saturating_sub(self.began);
        if span < SPAN_MIN.max(turnaround) {
            return;
        }
        if self.rates.len() == RATES_MAX_COUNT {
            self.rates.pop_front();
        }
        self.rates.push_back((settled - self.began_settled) as f64 / span.as_secs_f64());
        let best = self.rates.iter().copied().fold(0.0, f64::max);
        let wanted = (best * turnaround.as_secs_f64() * GAIN) as u64 + self.spare;
        self.limit = wanted.clamp(self.floor, self.cap);
        (self.began, self.began_settled) = (now, settled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets a service of `latency_ms` that can do at most `rate_max` a second work for a while with a full window.
    fn settle_for(window: &mut LaneWindow, millis: u64, latency_ms: u64, rate_max: f64) {
        let mut settled = 0.0;
        for tick in 1..=millis / 10 {
            settled += (window.limit() as f64 / latency_ms as f64 * 1_000.0).min(rate_max) / 100.0;
            window.observe(
                Duration::from_millis(tick * 10),
                settled as u64,
                Duration::from_millis(latency_ms),
            );
        }
    }

    #[test]
    fn a_service_with_latency_gets_a_window_of_about_twice_rate_times_latency() {
        let mut window = LaneWindow::new(4_000, 100_000, Duration::ZERO);
        settle_for(&mut window, 60_000, 500, 50_000.0);
        assert!((50_000..56_000).contains(&window.limit()), "{}", window.limit());
    }

    #[test]
    fn a_fast_service_leaves_the_window_small() {
        let mut window = LaneWindow::new(4_000, 100_000, Duration::ZERO);
        settle_for(&mut window, 60_000, 2, 100_000.0);
        assert_eq!(window.limit(), 4_000);
    }

    #[test]
    fn the_window_is_there_within_a_few_turnarounds() {
        let mut window = LaneWindow::new(4_000, 100_000, Duration::ZERO);
        settle_for(&mut window, 240, 50, 400_000.0);
        assert!(window.limit() >= 40_000, "{}", window.limit());
    }

    #[test]
    fn what_the_sender_has_in_flight_makes_room_for_twice_as_much_before_a_rate_is_known() {
        let mut window = LaneWindow::new(4_000, 100_000, Duration::ZERO);
        window.make_room(Duration::from_millis(10), 4_000);
        assert_eq!(window.limit(), 10_000);
        assert!(!window.is_due(Duration::from_millis(15)) && window.is_due(Duration::from_millis(20)));
        window.make_room(Duration::from_millis(20), 90_000);
        assert_eq!(window.limit(), 100_000);
    }

    #[test]
    fn behind_a_crash_the_window_is_one_chunk_until_one_is_settled_and_doubles_with_progress() {
        let mut window = LaneWindow::new(4_000, 100_000, Duration::ZERO).behind_crash(1_000);
        let mut limits = Vec::new();
        for settled in [0, 999, 1_000, 2_999, 3_000, 7_000] {
            // The sender would have more.
            window.make_room(Duration::from_millis(settled), 50_000);
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
            window.make_room(Duration::from_millis(500 * turnaround), 50_000);
            settled += window.limit();
            window.raise(settled);
        }
        assert_eq!(window.limit(), 100_000);
    }

    #[test]
    fn a_window_that_is_not_needed_shrinks_to_its_floor() {
        let mut window = LaneWindow::new(4_000, 100_000, Duration::ZERO);
        settle_for(&mut window, 60_000, 1_000, 1_000_000.0);
        assert_eq!(window.limit(), 100_000);
        for tick in 1..100 {
            window.observe(Duration::from_secs(60 + tick), 10_000_000_000, Duration::from_secs(1));
        }
        assert_eq!(window.limit(), 4_000);
    }
}
