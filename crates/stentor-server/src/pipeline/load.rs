//! The unsettled deliveries of each lane of a dispatcher, and whether the lane is quick. A lane with a slow push service occupies its part
//! of the budget for long, and the other lanes lack it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use stentor_core::id::AppId;

use super::window::{LOOK_MIN, LaneWindow};

/// A lane is quick if it settles the deliveries it holds within this time.
const QUICK: Duration = Duration::from_secs(5);
/// Shortest span of a measurement. A measurement is valid for twice this time without a settlement.
const SPAN_MIN: Duration = Duration::from_secs(1);
/// Lanes unused for this long are removed.
const KEPT: Duration = Duration::from_secs(60);
/// The expected chunk size shrinks by one part in this many with each smaller chunk, and grows at once with a larger one.
const SMALLER_PART: u64 = 8;
/// This many lanes are measured as often as a single one; with more, measurements are rarer.
const LANES_TOGETHER: usize = 16;

/// Unsettled deliveries of one lane.
#[derive(Debug, Default)]
pub(crate) struct Load {
    deliveries: AtomicU64,
    /// Deliveries awaited longer than the rest of their chunks.
    late: AtomicU64,
    chunks: AtomicUsize,
    settled: AtomicU64,
    /// Size of the largest recent chunks, approximately; 0 before the first.
    chunk: AtomicU64,
    /// Mean time of recent chunks from reservation to settlement, in microseconds; 0 before the first.
    took_us: AtomicU64,
}

impl Load {
    /// Returns the number of late deliveries: those awaited longer than the rest of their chunks.
    pub(crate) fn late(&self) -> u64 {
        self.late.load(Ordering::Acquire)
    }

    /// Returns the number of the other deliveries.
    pub(crate) fn deliveries(&self) -> u64 {
        self.deliveries.load(Ordering::Acquire)
    }

    /// Returns the number of chunks.
    pub(crate) fn chunks(&self) -> usize {
        self.chunks.load(Ordering::Acquire)
    }

    /// Returns the number of deliveries settled so far.
    pub(crate) fn settled(&self) -> u64 {
        self.settled.load(Ordering::Acquire)
    }

    /// Returns the largest expected size of the next chunks: twice the recent size, because chunks of an audience grow by that factor from
    /// one step of its producer to the next. Returns `most` before the first chunk.
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
        // Added first: a lane that seemed empty in between would be given more, or be removed.
        self.deliveries.fetch_add(to, Ordering::AcqRel);
        self.deliveries.fetch_sub(from, Ordering::AcqRel);
    }

    pub(super) fn settle(&self, deliveries: u64, took: Duration) {
        self.settled.fetch_add(deliveries, Ordering::AcqRel);
        let took_us = (took.as_micros() as u64).max(1);
        // A running mean over about eight chunks; the first sets it.
        let mean = |mean: u64| if mean == 0 { took_us } else { (mean * 7 + took_us) / 8 };
        let _ = self.took_us.fetch_update(Ordering::AcqRel, Ordering::Acquire, |before| Some(mean(before)));
    }

    /// Returns true if recent settlements were quick.
    fn is_quick(&self) -> bool {
        Duration::from_micros(self.took_us.load(Ordering::Acquire)) <= QUICK
    }

    /// Counts late deliveries as settled, without an effect on the measured time.
    pub(super) fn settle_late(&self, deliveries: u64) {
        self.settled.fetch_add(deliveries, Ordering::AcqRel);
    }

    /// Moves deliveries to the late ones.
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

/// Measures how long a lane takes to settle the deliveries it holds.
#[derive(Debug)]
struct Turnover {
    began: Duration,
    began_settled: u64,
    /// The most deliveries held since `began`; the present number is small after a burst of answers.
    most_held: u64,
    last_count: u64,
    last_settled: Duration,
    /// The last measurement; `None` before the first settlement.
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
    /// Returns true if the lane soon gives back the deliveries it takes: recent settlements were quick and matched the number held.
    pub(crate) fn is_quick(&self) -> bool {
        self.load.is_quick() && self.turnover.is_quick(self.looked)
    }
}

/// Recently used lanes of a dispatcher, by app.
pub(crate) struct LaneLoads {
    lanes: HashMap<AppId, LaneLoad>,
    /// Number of lanes of all dispatchers.
    known: Arc<AtomicUsize>,
    looked: Duration,
}

impl LaneLoads {
    /// Creates an empty set; `known` counts the lanes of all dispatchers.
    pub(crate) fn new(known: Arc<AtomicUsize>) -> Self {
        Self { lanes: HashMap::new(), known, looked: Duration::ZERO }
    }

    /// Returns an app's lane, and creates it with the given window if it is new.
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

    /// Measures the lanes in use if the interval has passed, and removes unused ones.
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

    /// Returns true if a lane in use may get a larger window.
    pub(crate) fn may_grow(&self) -> bool {
        self.lanes.values().any(|lane| lane.load.chunks() > 0 && lane.window.may_grow())
    }

    /// Returns the number of lanes in use other than `app`'s.
    pub(crate) fn others(&self, app: AppId) -> usize {
        self.lanes.iter().filter(|(other, lane)| **other != app && lane.load.chunks() > 0).count()
    }

    /// Returns the sum of the windows.
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

/// The batches of a dispatcher: the number that its consumers may have in flight, and as many again for lanes that have few.
pub(crate) struct Batches {
    pub(crate) busy: usize,
    /// Number of other lanes with batches in flight.
    pub(crate) others: usize,
    pub(crate) is_quick: bool,
    pub(crate) max: usize,
}

impl Batches {
    /// Returns true if a lane may have one more batch. A quick lane may while a place is free, another lane while it leaves as many free as
    /// it has. Below an equal share, any lane may.
    pub(crate) fn has_place_for(&self, load: &Load) -> bool {
        let own = load.chunks();
        let is_free = self.busy < self.max && (self.is_quick || own < self.max - self.busy);
        is_free || self.busy < 2 * self.max && own < self.max / (self.others + 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates `count` seconds of a lane with `held` deliveries that settles `per_second` of them. Returns for each second whether it is
    /// quick.
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
