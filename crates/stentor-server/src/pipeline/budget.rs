//! The budget of a node: how many deliveries may be leased and not settled. It limits the duplicates of one crash.
//!
//! For a minute after a crash, audiences get only a small part of it, so that a process that crashes repeatedly puts few deliveries in
//! doubt each time. Late deliveries do not count towards that part. Otherwise a push service that leaves some of them unanswered would hold
//! up all others.
//!
//! All lanes share the budget. A quick lane may use all of it while it is the only one. A slow lane, or one that is not measured yet, may
//! use at most as much as it leaves free, so that some is always left for the next lane.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use stentor_core::chunk::TrafficClass;
use tokio::time::Instant;

use super::load::Load;

/// A quick lane leaves one part in this many free if there are other lanes.
const FREE_PART: u64 = 8;
/// Most unsettled deliveries of audiences after a crash, without late ones.
const CAREFUL_MAX_DELIVERIES: u64 = 2_000;
/// Duration of that limit.
const CAREFUL_FOR: Duration = Duration::from_secs(60);

/// The budget of one node, shared by all its dispatchers.
pub(crate) struct NodeBudget {
    used: AtomicU64,
    max: u64,
    bulk_max: u64,
    /// Unsettled deliveries of audiences, without late ones.
    prompt_bulk: AtomicU64,
    /// End of the time after a crash in which few deliveries may be in doubt.
    careful_until: Option<Instant>,
    /// Number of recently used lanes.
    lanes: Arc<AtomicUsize>,
}

/// A lane's claim on the budget.
#[derive(Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub(crate) dispatcher: &'a Arc<Unsettled>,
    pub(crate) load: &'a Arc<Load>,
    pub(crate) class: TrafficClass,
    /// True if the lane soon gives back the deliveries it takes.
    pub(crate) is_quick: bool,
}

/// The unsettled deliveries of one dispatcher.
#[derive(Default)]
pub(crate) struct Unsettled {
    bulk: AtomicU64,
    urgent: AtomicU64,
}

impl NodeBudget {
    /// Creates a budget of `max` deliveries, of which audiences may use `bulk_max`.
    pub(crate) fn new(max: u64, bulk_max: u64) -> Arc<Self> {
        Arc::new(Self::of(max, bulk_max, None))
    }

    /// Creates the same budget with a low limit for audiences at first: this process has recovered unsettled deliveries of a crashed one.
    pub(crate) fn behind_crash(max: u64, bulk_max: u64) -> Arc<Self> {
        Arc::new(Self::of(max, bulk_max, Some(Instant::now() + CAREFUL_FOR)))
    }

    fn of(max: u64, bulk_max: u64, careful_until: Option<Instant>) -> Self {
        let (used, prompt_bulk) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { used, max, bulk_max, prompt_bulk, careful_until, lanes: Arc::default() }
    }

    /// Returns true for a minute after a crash, while few deliveries may be in doubt.
    pub(crate) fn is_careful(&self) -> bool {
        self.careful_until.is_some_and(|until| Instant::now() < until)
    }

    /// Returns the counter of the lanes that share the budget.
    pub(crate) fn lanes(&self) -> Arc<AtomicUsize> {
        self.lanes.clone()
    }

    /// Reserves `count` deliveries if they fit. The first reservation always fits; otherwise a large chunk could never be sent.
    pub(crate) fn reserve(self: &Arc<Self>, claim: Claim<'_>, count: u64) -> Option<Reservation> {
        let Claim { dispatcher, load, class, .. } = claim;
        let max = if class == TrafficClass::Bulk { self.bulk_max } else { self.max };
        // Outside the atomic step below: only the lane's own dispatcher increases its load, and a concurrent decrease only makes room.
        let has = load.deliveries() + load.late();
        let fits = |used: u64| used + count <= max && has + count <= self.share(claim, max, used);
        let fit = |used: u64| (used == 0 || fits(used)).then_some(used + count);
        if !self.take_prompt(class, count) {
            return None;
        }
        // One atomic step for all lanes: two concurrent reservations could otherwise both take the same room.
        if self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, fit).is_err() {
            self.give_back_prompt(class, count);
            return None;
        }
        dispatcher.of(class).fetch_add(count, Ordering::AcqRel);
        load.add(count);
        let (budget, dispatcher, load) = (self.clone(), dispatcher.clone(), load.clone());
        Some(Reservation { budget, dispatcher, load, class, count, is_late: false, began: Instant::now() })
    }

    /// Counts deliveries of audiences that are not late, if they fit. The first always fit.
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

    /// Returns the most deliveries that a lane may have.
    fn share(&self, claim: Claim<'_>, max: u64, used: u64) -> u64 {
        match claim.is_quick {
            true if self.lanes.load(Ordering::Acquire) <= 1 => max,
            true => max - max / FREE_PART,
            false => max.saturating_sub(used),
        }
    }

    /// Returns the number of deliveries in use.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Acquire)
    }
}

impl Unsettled {
    /// Returns the number of unsettled deliveries of a class.
    pub(crate) fn count(&self, class: TrafficClass) -> u64 {
        self.of(class).load(Ordering::Acquire)
    }

    /// Returns the number of unsettled deliveries of both classes.
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
    /// True if it holds the late part of a chunk, which needs no consumer and no place in the lane's window.
    is_late: bool,
    began: Instant,
}

impl Reservation {
    /// Corrects the count to the real size of the chunk.
    pub(crate) fn resize(&mut self, count: u64) {
        // Growth is not checked against the limit: the chunk is already leased, and may have been made with a larger `chunk_max_devices`.
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
        // The budget's own counts stay the same: a crash leaves late deliveries in doubt as well.
        self.budget.give_back_prompt(self.class, count);
        self.load.part_late(count);
        let (budget, dispatcher, load) = (self.budget.clone(), self.dispatcher.clone(), self.load.clone());
        Self { budget, dispatcher, load, class: self.class, count, is_late: true, began: self.began }
    }

    /// Ends the reservation and records its deliveries as settled.
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

        /// Reserves single deliveries until the budget refuses one.
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
