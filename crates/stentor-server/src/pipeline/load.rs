//! What each lane of a dispatcher has unsettled, and whether it is quick: what one credential's push service holds back for long is
//! not there for others.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use stentor_core::id::AppId;

use super::window::{LOOK_MIN, LaneWindow};

/// A lane is quick while it settles what it holds within this time.
const QUICK: Duration = Duration::from_secs(5);
/// Shortest time over which that is measured, and half of the longest that it is believed without a settlement.
const SPAN_MIN: Duration = Duration::from_secs(1);
/// Lanes that are not used are forgotten after this long.
const KEPT: Duration = Duration::from_secs(60);
/// What a chunk is expected to hold follows smaller ones by this part with each of them, and a larger one at once.
const SMALLER_PART: u64 = 8;
/// So many lanes are measured as often as one.
const LANES_TOGETHER: usize = 16;

/// What one lane has unsettled.
#[derive(Debug, Default)]
pub(crate) struct Load {
    deliveries: AtomicU64,
    /// Those that are waited for longer than the rest of their chunks.
    late: AtomicU64,
    chunks: AtomicUsize,
    settled: AtomicU64,
    /// The size of the last chunks, about that of the largest; 0 before the first.
    chunk: AtomicU64,
    /// How long the last chunks took from their reservation to their settlement, on average; 0 before the first.
    took_us: AtomicU64,
}

impl Load {
    /// Counts deliveries that are waited for longer than the rest of their chunks.
    pub(crate) fn late(&self) -> u64 {
        self.late.load(Ordering::Acquire)
    }

    /// Counts the other deliveries.
    pub(crate) fn deliveries(&self) -> u64 {
        self.deliveries.load(Ordering::Acquire)
    }

    /// Counts chunks.
    pub(crate) fn chunks(&self) -> usize {
        self.chunks.load(Ordering::Acquire)
    }

    /// Counts the deliveries settled so far.
    pub(crate) fn settled(&self) -> u64 {
        self.settled.load(Ordering::Acquire)
    }

    /// Returns the most that the next chunks are expected to hold: twice as much as the last, for those of an audience grow by so much
    /// from one step of its producer to the next, and `most` before anything is known.
    pub(crate) fn expected_chunk(&self, most: u64) -> u64 {
        let chunk = self.chunk.load(Ordering::Acquire);
        if chunk == 0 { most } else { (2 * chunk).min(most) }
    }

    fn note_chunk(&self, deliveries: u64) {
        let follow = |chunk: u64| Some(deliveries.max(chunk - chunk.div_ceil(SMALLER_PART)).max(1));
        let _ = self.chunk.fetch_update(Ordering::AcqRel, Ordering::Acquire, follow);
    }

    pub(super) fn add(&self, deliveries: u64) {
        self.deliveries.fetch_add(deliveries, Ordering::AcqRel);
        self.chunks.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn resize(&self, from: u64, to: u64) {
        self.note_chunk(to);
        // Added first: a lane that looks empty in between would be given more, or be forgotten.
        self.deliveries.fetch_add(to, Ordering::AcqRel);
        self.deliveries.fetch_sub(from, Ordering::AcqRel);
    }

    pub(super) fn settle(&self, deliveries: u64, took: Duration) {
        self.settled.fetch_add(deliveries, Ordering::AcqRel);
        let took_us = (took.as_micros() as u64).max(1);
        // A running average over about eight chunks; the first counts whole.
        let mean = |mean: u64| if mean == 0 { took_us } else { (mean * 7 + took_us) / 8 };
        let _ = self.took_us.fetch_update(Ordering::AcqRel, Ordering::Acquire, |before| Some(mean(before)));
    }

    /// Returns whether what was settled lately had not taken long.
    fn is_quick(&self) -> bool {
        Duration::from_micros(self.took_us.load(Ordering::Acquire)) <= QUICK
    }

    /// Counts as settled what was waited for longer than the rest of its chunk, which says nothing of how quick the lane is.
    pub(super) fn settle_late(&self, deliveries: u64) {
        self.settled.fetch_add(deliveries, Ordering::AcqRel);
    }

    /// Takes deliveries that are late out of the others.
    pub(super) fn part_late(&self, deliveries: u64) {
        // Added first, as in `resize`.
        self.late.fetch_add(deliveries, Ordering::AcqRel);
        self.deliveries.fetch_sub(deliveries, Ordering::AcqRel);
    }

    pub(super) fn remove(&self, deliveries: u64) {
        self.deliveries.fetch_sub(deliveries, Ordering::AcqRel);
        self.chunks.fetch_sub(1, Ordering::AcqRel);
    }

    pub(super) fn remove_late(&self, deliveries: u64) {
        self.late.fetch_sub(deliveries, Ordering::AcqRel);
    }
}

/// How long a lane takes to settle what it holds.
#[derive(Debug)]
struct Turnover {
    began: Duration,
    began_settled: u64,
    /// The most that was held since then: answers that come all at once leave little.
    most_held: u64,
    last_count: u64,
    last_settled: Duration,
    /// What was measured last; `None` before anything was settled.
    takes: Option<Duration>,
}

impl Turnover {
    const fn new(now: Duration) -> Self {
        Self { began: now, began_settled: 0, most_held: 0, last_count: 0, last_settled: now, takes: None }
    }

    fn observe(&mut self, now: Duration, held: u64, settled: u64) {
        let span = now.saturating_sub(self.began);
        let count = settled - self.began_settled;
        self.most_held = self.most_held.max(held);
        if count > self.last_count || held == 0 {
            self.last_settled = now;
        }
        self.last_count = count;
        let is_measured = count > 0 && (span >= SPAN_MIN || self.takes.is_none());
        if is_measured {
            self.takes = Some(span.mul_f64(self.most_held as f64 / count as f64));
        }
        if is_measured || held == 0 {
            (self.began, self.began_settled, self.most_held, self.last_count) = (now, settled, held, 0);
        }
    }

    fn is_quick(&self, now: Duration) -> bool {
        let silent = now.saturating_sub(self.last_settled);
        self.takes.is_some_and(|takes| takes <= QUICK) && silent <= 2 * SPAN_MIN
    }
}

/// One lane of a dispatcher.
pub(crate) struct LaneLoad {
    pub(crate) load: Arc<Load>,
    pub(crate) window: LaneWindow,
    turnover: Turnover,
    used: Duration,
    looked: Duration,
}

impl LaneLoad {
    /// Returns whether what it takes is soon there again: what was settled had not taken long, and it was as much as is held.
    pub(crate) fn is_quick(&self) -> bool {
        self.load.is_quick() && self.turnover.is_quick(self.looked)
    }
}

/// The lanes of a dispatcher that were used lately, by app.
pub(crate) struct LaneLoads {
    lanes: HashMap<AppId, LaneLoad>,
    /// Lanes of all dispatchers.
    known: Arc<AtomicUsize>,
    looked: Duration,
}

impl LaneLoads {
    /// Starts without any; `known` counts those of all dispatchers.
    pub(crate) fn new(known: Arc<AtomicUsize>) -> Self {
        Self { lanes: HashMap::new(), known, looked: Duration::ZERO }
    }

    /// Returns an app's lane, whose window begins as `window` says.
    pub(crate) fn of(&mut self, app: AppId, now: Duration, window: impl FnOnce() -> LaneWindow) -> &LaneLoad {
        let known = &self.known;
        let lane = self.lanes.entry(app).or_insert_with(|| {
            known.fetch_add(1, Ordering::AcqRel);
            let turnover = Turnover::new(now);
            LaneLoad { load: Arc::default(), window: window(), turnover, used: now, looked: now }
        });
        lane.used = now;
        lane
    }

    /// Measures the lanes that hold anything, when it is time, and forgets those that were not used for long.
    pub(crate) fn measure(&mut self, now: Duration, window: impl Fn(AppId, &mut LaneWindow, &Load)) {
        let pause = LOOK_MIN * u32::try_from(1 + self.lanes.len() / LANES_TOGETHER).unwrap_or(u32::MAX);
        if now.saturating_sub(self.looked) < pause {
            return;
        }
        self.looked = now;
        for (app, lane) in &mut self.lanes {
            let LaneLoad { load, turnover, looked, .. } = lane;
            turnover.observe(now, load.deliveries(), load.settled());
            *looked = now;
            if load.chunks() > 0 || lane.window.is_due(now) && now.saturating_sub(lane.used) < KEPT {
                window(*app, &mut lane.window, &lane.load);
            }
        }
        self.forget(|lane| lane.load.chunks() > 0 || now.saturating_sub(lane.used) < KEPT);
    }

    /// Returns whether a lane that holds anything may come to hold more.
    pub(crate) fn may_grow(&self) -> bool {
        self.lanes.values().any(|lane| lane.load.chunks() > 0 && lane.window.may_grow())
    }

    /// Counts the lanes that hold anything, that of `app` apart.
    pub(crate) fn others(&self, app: AppId) -> usize {
        self.lanes.iter().filter(|(other, lane)| **other != app && lane.load.chunks() > 0).count()
    }

    /// Adds up the windows.
    pub(crate) fn windows(&self) -> u64 {
        self.lanes.values().map(|lane| lane.window.limit()).sum()
    }

    fn forget(&mut self, keep: impl Fn(&LaneLoad) -> bool) {
        let before = self.lanes.len();
        self.lanes.retain(|_, lane| keep(lane));
        self.known.fetch_sub(before - self.lanes.len(), Ordering::AcqRel);
    }
}

impl Drop for LaneLoads {
    fn drop(&mut self) {
        self.forget(|_| false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets a service take `takes_ms` for each of `held` deliveries for some seconds; returns whether it was quick after each.
    fn seconds(turnover: &mut Turnover, from: u64, count: u64, held: u64, per_second: u64) -> Vec<bool> {
        let mut settled = turnover.began_settled;
        let second = |second: u64| {
            settled += per_second;
            let now = Duration::from_secs(second);
            turnover.observe(now, held, settled);
            turnover.is_quick(now)
        };
        (from..from + count).map(second).collect()
    }

    #[test]
    fn a_lane_is_quick_while_it_settles_what_it_holds_within_seconds() {
        let mut turnover = Turnover::new(Duration::ZERO);
        assert!(!turnover.is_quick(Duration::ZERO), "nothing is known yet");
        assert_eq!(seconds(&mut turnover, 1, 3, 40_000, 20_000), [true; 3]);
        assert_eq!(seconds(&mut turnover, 4, 3, 40_000, 10), [false; 3], "it answers now and then");
        assert_eq!(seconds(&mut turnover, 7, 2, 40_000, 20_000), [true; 2]);
        assert_eq!(seconds(&mut turnover, 9, 4, 40_000, 0), [true, true, false, false], "it answers no more");
    }

    #[test]
    fn a_chunk_is_expected_to_hold_twice_what_the_largest_of_the_last_ones_did_at_most() {
        let load = Load::default();
        assert_eq!(load.expected_chunk(1_000), 1_000, "nothing is known yet");
        load.add(1_000);
        load.resize(1_000, 25);
        assert_eq!(load.expected_chunk(1_000), 50);
        load.resize(25, 400);
        (0..5).for_each(|_| load.resize(400, 3));
        assert!(
            (200..800).contains(&load.expected_chunk(1_000)),
            "a few small ones may have others between them"
        );
        (0..50).for_each(|_| load.resize(3, 3));
        assert_eq!((load.expected_chunk(1_000), load.expected_chunk(5)), (6, 5));
    }

    #[test]
    fn what_took_long_is_not_quick_however_much_of_it_is_settled_at_once() {
        let load = Load::default();
        load.settle(1_000, Duration::from_secs(20));
        assert!(!load.is_quick());
        (0..20).for_each(|_| load.settle(1_000, Duration::from_secs(1)));
        assert!(load.is_quick());
    }

    #[test]
    fn answers_that_come_late_and_all_at_once_are_late() {
        let mut turnover = Turnover::new(Duration::ZERO);
        turnover.observe(Duration::from_secs(1), 4_000, 0);
        turnover.observe(Duration::from_secs(20), 100, 3_900);
        assert!(!turnover.is_quick(Duration::from_secs(20)));
    }

    #[test]
    fn a_lane_without_anything_unsettled_keeps_its_name() {
        let mut turnover = Turnover::new(Duration::ZERO);
        seconds(&mut turnover, 1, 1, 100, 100);
        assert_eq!(seconds(&mut turnover, 2, 60, 0, 0), [true; 60]);
    }
}
