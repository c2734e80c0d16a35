//! How many deliveries may be leased and not settled: the bound of the duplicates of one crash.
//!
//! Behind a crash audiences have little of it for a minute: a process that dies again and again puts few deliveries in doubt each
//! time. What is late does not count then, or a push service that never answers some would hold up all others.
//!
//! It belongs to all lanes. One that is quick may use all of it, where it is alone; one that is slow, or of which nothing is
//! known yet, at most as much as it leaves free: so there is always something left for who comes next.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use stentor_core::chunk::TrafficClass;
use tokio::time::Instant;

use super::load::Load;

/// The part of the budget that a quick lane leaves free where there are others.
const FREE_PART: u64 = 8;
/// Most unsettled deliveries of audiences behind a crash, without late ones.
const CAREFUL_MAX_DELIVERIES: u64 = 2_000;
/// For how long that holds.
const CAREFUL_FOR: Duration = Duration::from_secs(60);

/// The bound of one node, shared by all its dispatchers.
pub(crate) struct NodeBudget {
    used: AtomicU64,
    max: u64,
    bulk_max: u64,
    /// Unsettled deliveries of audiences, without late ones.
    prompt_bulk: AtomicU64,
    /// Until when little may be in doubt.
    careful_until: Option<Instant>,
    /// Lanes that were used lately.
    lanes: Arc<AtomicUsize>,
}

/// Who asks for a part of the budget.
#[derive(Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub(crate) dispatcher: &'a Arc<Unsettled>,
    pub(crate) load: &'a Arc<Load>,
    pub(crate) class: TrafficClass,
    /// Whether what it takes is soon there again.
    pub(crate) is_quick: bool,
}

/// What one dispatcher has unsettled.
#[derive(Default)]
pub(crate) struct Unsettled {
    bulk: AtomicU64,
    urgent: AtomicU64,
}

impl NodeBudget {
    /// Allows `max` deliveries, of which audiences may use `bulk_max`.
    pub(crate) fn new(max: u64, bulk_max: u64) -> Arc<Self> {
        Arc::new(Self::of(max, bulk_max, None))
    }

    /// Allows the same, and little of it at first: what another process had unsettled when it died was recovered.
    pub(crate) fn behind_crash(max: u64, bulk_max: u64) -> Arc<Self> {
        Arc::new(Self::of(max, bulk_max, Some(Instant::now() + CAREFUL_FOR)))
    }

    fn of(max: u64, bulk_max: u64, careful_until: Option<Instant>) -> Self {
        let (used, prompt_bulk) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { used, max, bulk_max, prompt_bulk, careful_until, lanes: Arc::default() }
    }

    /// Returns whether a crash is so recent that little may be in doubt.
    pub(crate) fn is_careful(&self) -> bool {
        self.careful_until.is_some_and(|until| Instant::now() < until)
    }

    /// Returns the counter of the lanes that share it.
    pub(crate) fn lanes(&self) -> Arc<AtomicUsize> {
        self.lanes.clone()
    }

    /// Takes `count` deliveries if they fit; the first always fits, lest nothing move.
    pub(crate) fn reserve(self: &Arc<Self>, claim: Claim<'_>, count: u64) -> Option<Reservation> {
        let Claim { dispatcher, load, class, .. } = claim;
        let max = if class == TrafficClass::Bulk { self.bulk_max } else { self.max };
        // Not part of the step below: a lane's load grows in its own dispatcher alone, and whoever frees some of it
        // meanwhile only makes room.
        let has = load.deliveries() + load.late();
        let fits = |used: u64| used + count <= max && has + count <= self.share(claim, max, used);
        let fit = |used: u64| (used == 0 || fits(used)).then_some(used + count);
        if !self.take_prompt(class, count) {
            return None;
        }
        // In one step for all lanes: two that asked side by side would both find the room that is left.
        if self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, fit).is_err() {
            self.give_back_prompt(class, count);
            return None;
        }
        dispatcher.of(class).fetch_add(count, Ordering::AcqRel);
        load.add(count);
        let (budget, dispatcher, load) = (self.clone(), dispatcher.clone(), load.clone());
        Some(Reservation { budget, dispatcher, load, class, count, is_late: false, began: Instant::now() })
    }

    /// Counts what is not late of audiences, if it fits; the first always fits.
    fn take_prompt(&self, class: TrafficClass, count: u64) -> bool {
        let most = if self.is_careful() { CAREFUL_MAX_DELIVERIES } else { u64::MAX };
        let fit = |prompt: u64| (prompt == 0 || prompt + count <= most).then_some(prompt + count);
        class != TrafficClass::Bulk
            || self.prompt_bulk.fetch_update(Ordering::AcqRel, Ordering::Acquire, fit).is_ok()
    }

    fn give_back_prompt(&self, class: TrafficClass, count: u64) {
        if class == TrafficClass::Bulk {
            self.prompt_bulk.fetch_sub(count, Ordering::AcqRel);
        }
    }

    /// Returns the most that a lane may have.
    fn share(&self, claim: Claim<'_>, max: u64, used: u64) -> u64 {
        match claim.is_quick {
            true if self.lanes.load(Ordering::Acquire) <= 1 => max,
            true => max - max / FREE_PART,
            false => max.saturating_sub(used),
        }
    }

    /// Counts what is in use.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Acquire)
    }
}

impl Unsettled {
    /// Counts what a class has unsettled.
    pub(crate) fn count(&self, class: TrafficClass) -> u64 {
        self.of(class).load(Ordering::Acquire)
    }

    /// Counts what both have.
    pub(crate) fn total(&self) -> u64 {
        self.count(TrafficClass::Bulk) + self.count(TrafficClass::Urgent)
    }

    const fn of(&self, class: TrafficClass) -> &AtomicU64 {
        match class {
            TrafficClass::Bulk => &self.bulk,
            TrafficClass::Urgent => &self.urgent,
        }
    }
}

/// Deliveries taken from the budget; given back when dropped.
pub(crate) struct Reservation {
    budget: Arc<NodeBudget>,
    dispatcher: Arc<Unsettled>,
    load: Arc<Load>,
    class: TrafficClass,
    count: u64,
    /// Whether it is what is late of a chunk, which takes no consumer's time and no place in the lane's window.
    is_late: bool,
    began: Instant,
}

impl Reservation {
    /// Corrects the count to what the chunk really holds.
    pub(crate) fn resize(&mut self, count: u64) {
        // Whether what grows still fits is not asked: the chunk is leased, and was made under a larger
        // `chunk_max_devices` than there is now.
        let grown = count.saturating_sub(self.count);
        let shrunk = self.count.saturating_sub(count);
        for used in [&self.budget.used, self.dispatcher.of(self.class)] {
            used.fetch_add(grown, Ordering::AcqRel);
            used.fetch_sub(shrunk, Ordering::AcqRel);
        }
        if self.class == TrafficClass::Bulk {
            self.budget.prompt_bulk.fetch_add(grown, Ordering::AcqRel);
            self.budget.prompt_bulk.fetch_sub(shrunk, Ordering::AcqRel);
        }
        self.load.resize(self.count, count);
        self.count = count;
    }

    /// Takes `count` deliveries that are late into a reservation of their own.
    pub(crate) fn split(&mut self, count: u64) -> Self {
        let count = count.min(self.count);
        self.count -= count;
        // The budget's own counts stay as they are: late or not, a crash would leave it in doubt.
        self.budget.give_back_prompt(self.class, count);
        self.load.part_late(count);
        let (budget, dispatcher, load) = (self.budget.clone(), self.dispatcher.clone(), self.load.clone());
        Self { budget, dispatcher, load, class: self.class, count, is_late: true, began: self.began }
    }

    /// Frees it as settled work.
    pub(crate) fn settled(self) {
        if self.is_late {
            self.load.settle_late(self.count);
        } else {
            self.load.settle(self.count, self.began.elapsed());
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.count, Ordering::AcqRel);
        self.dispatcher.of(self.class).fetch_sub(self.count, Ordering::AcqRel);
        if self.is_late {
            self.load.remove_late(self.count);
        } else {
            self.budget.give_back_prompt(self.class, self.count);
            self.load.remove(self.count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Lane {
        dispatcher: Arc<Unsettled>,
        load: Arc<Load>,
    }

    impl Lane {
        fn claim(&self, class: TrafficClass, is_quick: bool) -> Claim<'_> {
            Claim { dispatcher: &self.dispatcher, load: &self.load, class, is_quick }
        }

        /// Takes as many parts as it gets.
        fn fill(&self, budget: &Arc<NodeBudget>, is_quick: bool) -> Vec<Reservation> {
            std::iter::from_fn(|| budget.reserve(self.claim(TrafficClass::Bulk, is_quick), 1)).collect()
        }
    }

    #[test]
    fn audiences_leave_room_for_single_messages() {
        let (budget, lane) = (NodeBudget::new(100, 80), Lane::default());
        let bulk = budget.reserve(lane.claim(TrafficClass::Bulk, true), 80).expect("fits");
        assert!(budget.reserve(lane.claim(TrafficClass::Bulk, true), 1).is_none());
        let urgent = budget.reserve(lane.claim(TrafficClass::Urgent, true), 20).expect("fits");
        assert!(budget.reserve(lane.claim(TrafficClass::Urgent, true), 1).is_none());
        drop((bulk, urgent));
        assert_eq!((budget.used(), lane.dispatcher.total(), lane.load.chunks()), (0, 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn behind_a_crash_all_audiences_together_have_little_in_doubt_for_a_minute() {
        let (budget, lanes) = (NodeBudget::behind_crash(100_000, 80_000), [Lane::default(), Lane::default()]);
        let fill = |lane: &Lane, class| -> Vec<_> {
            std::iter::from_fn(|| budget.reserve(lane.claim(class, true), 500)).collect()
        };
        let mut held = fill(&lanes[0], TrafficClass::Bulk);
        assert_eq!(held.len(), 4);
        assert!(fill(&lanes[1], TrafficClass::Bulk).is_empty(), "it is one bound for all lanes");
        assert!(fill(&lanes[1], TrafficClass::Urgent).len() > 100, "single messages are not held up");
        let _late = held[0].split(500);
        assert_eq!(fill(&lanes[1], TrafficClass::Bulk).len(), 1, "what is late holds up nobody");
        tokio::time::advance(CAREFUL_FOR).await;
        assert!(fill(&lanes[1], TrafficClass::Bulk).len() > 100);
    }

    #[test]
    fn a_reservation_follows_the_real_size_and_is_given_back_whole() {
        let (budget, lane) = (NodeBudget::new(100, 80), Lane::default());
        let mut held = budget.reserve(lane.claim(TrafficClass::Bulk, true), 50).expect("fits");
        held.resize(3);
        assert_eq!(
            (budget.used(), lane.dispatcher.count(TrafficClass::Bulk), lane.load.deliveries()),
            (3, 3, 3)
        );
        held.settled();
        assert_eq!((budget.used(), lane.load.deliveries(), lane.load.settled()), (0, 0, 3));
    }

    #[test]
    fn what_is_split_off_is_counted_once_and_given_back_by_itself() {
        let (budget, lane) = (NodeBudget::new(100, 80), Lane::default());
        let mut held = budget.reserve(lane.claim(TrafficClass::Bulk, true), 50).expect("fits");
        let rest = held.split(8);
        assert_eq!((budget.used(), lane.load.deliveries(), lane.load.late()), (50, 42, 8));
        held.settled();
        assert_eq!((budget.used(), lane.dispatcher.total(), lane.load.deliveries()), (8, 8, 0));
        assert_eq!(lane.load.chunks(), 0, "what is late takes no place of a batch");
        rest.settled();
        assert_eq!((budget.used(), lane.load.settled(), lane.load.late()), (0, 50, 0));
    }

    #[test]
    fn a_chunk_larger_than_the_budget_passes_alone() {
        let (budget, lane) = (NodeBudget::new(10, 10), Lane::default());
        let _alone = budget.reserve(lane.claim(TrafficClass::Bulk, true), 50).expect("the first always fits");
        assert!(budget.reserve(lane.claim(TrafficClass::Urgent, true), 1).is_none());
    }

    #[test]
    fn slow_lanes_leave_as_much_free_as_each_of_them_has_however_many_they_are() {
        let budget = NodeBudget::new(100, 80);
        let slow: Vec<_> = (0..4).map(|_| Lane::default()).collect();
        let held: Vec<_> = slow.iter().map(|lane| lane.fill(&budget, false)).collect();
        assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), [40, 20, 10, 5]);
        assert_eq!(Lane::default().fill(&budget, true).len(), 5, "the next gets what is left");
    }

    #[test]
    fn a_quick_lane_has_everything_while_it_is_alone_and_leaves_an_eighth_beside_others() {
        let budget = NodeBudget::new(100, 80);
        assert_eq!(Lane::default().fill(&budget, true).len(), 80);
        budget.lanes().store(2, Ordering::Release);
        assert_eq!(Lane::default().fill(&budget, true).len(), 70);
    }
}
