//! The lanes that may have something due, so that the queue is not queried for the others.
//!
//! It only holds hints: those that it drops are restored by the next reading of the queue's depths.

use std::collections::{BTreeSet, HashMap};

use parking_lot::{Mutex, MutexGuard};
use stentor_core::chunk::{Lane, Ticket, TrafficClass};
use stentor_core::device::ProviderKind;
use stentor_core::ports::queue::LaneDepth;
use stentor_core::time::Timestamp;
use tokio::sync::Notify;

/// Most due times remembered per lane; the earliest are kept.
const HINTS_PER_LANE_MAX_COUNT: usize = 64;

/// One push service and one class: a dispatcher serves the lanes of both.
pub(crate) type DispatcherKey = (ProviderKind, TrafficClass);

/// Due times of lanes, and the wake-ups of each dispatcher.
pub(crate) struct DueIndex {
    lanes: Mutex<HashMap<Lane, BTreeSet<Timestamp>>>,
    wakeups: HashMap<DispatcherKey, DispatcherWakeups>,
}

/// Wake-ups of one dispatcher.
#[derive(Default)]
struct DispatcherWakeups {
    /// There is work to do at once.
    work: Notify,
    /// A due time is known, possibly a later one; the dispatcher runs from then on.
    known: Notify,
}

impl DueIndex {
    pub(crate) fn new() -> Self {
        let classes =
            |kind: &'static ProviderKind| TrafficClass::ALL.iter().map(move |class| (*kind, *class));
        let wakeups = ProviderKind::ALL
            .iter()
            .flat_map(classes)
            .map(|dispatcher| (dispatcher, DispatcherWakeups::default()))
            .collect();
        Self { lanes: Mutex::default(), wakeups }
    }

    /// Records published tickets and wakes their dispatchers.
    pub(crate) fn note(&self, tickets: &[Ticket]) {
        tickets.iter().for_each(|ticket| self.insert(ticket.lane, ticket.due_at));
        let dispatchers: BTreeSet<_> =
            tickets.iter().map(|ticket| (ticket.lane.provider, ticket.lane.class)).collect();
        dispatchers.into_iter().for_each(|dispatcher| self.wake(dispatcher));
    }

    /// Records the due times of the queue's contents.
    pub(crate) fn note_depths(&self, depths: &[LaneDepth], now: Timestamp) {
        for depth in depths {
            if depth.ready > 0 {
                self.insert(depth.lane, now);
                self.wake((depth.lane.provider, depth.lane.class));
            }
            depth.next_due.into_iter().for_each(|due_at| self.insert(depth.lane, due_at));
        }
    }

    /// Records one due time without waking a running dispatcher.
    pub(crate) fn insert(&self, lane: Lane, due_at: Timestamp) {
        let mut lanes = self.lock();
        let hints = lanes.entry(lane).or_default();
        hints.insert(due_at);
        if hints.len() > HINTS_PER_LANE_MAX_COUNT {
            // The latest is dropped: an earlier one wakes the dispatcher, which then finds it again.
            hints.pop_last();
        }
        // After the insertion, so that the woken task sees it.
        self.wakeups.get(&(lane.provider, lane.class)).into_iter().for_each(|one| one.known.notify_one());
    }

    /// Returns true if a dispatcher has any due time, now or later.
    pub(crate) fn knows(&self, dispatcher: DispatcherKey) -> bool {
        self.lock().keys().any(|lane| (lane.provider, lane.class) == dispatcher)
    }

    /// Waits until a dispatcher has any due time.
    pub(crate) async fn needed(&self, dispatcher: DispatcherKey) {
        let Some(wakeups) = self.wakeups.get(&dispatcher) else { return std::future::pending().await };
        // A due time inserted between the check and the wait leaves a permit and is not missed.
        while !self.knows(dispatcher) {
            wakeups.known.notified().await;
        }
    }

    /// Lists a dispatcher's lanes that are due, in order.
    pub(crate) fn due(&self, dispatcher: DispatcherKey, now: Timestamp) -> Vec<Lane> {
        let lanes = self.lock();
        let ready = |hints: &BTreeSet<Timestamp>| hints.first().is_some_and(|due_at| *due_at <= now);
        let mut due: Vec<_> = lanes
            .iter()
            .filter(|(lane, hints)| (lane.provider, lane.class) == dispatcher && ready(hints))
            .map(|(lane, _)| *lane)
            .collect();
        // The order of the map is arbitrary; fair turns need a stable one.
        due.sort_unstable();
        due
    }

    /// Returns true if a lane is due.
    pub(crate) fn is_due(&self, lane: Lane, now: Timestamp) -> bool {
        self.lock().get(&lane).and_then(BTreeSet::first).is_some_and(|due_at| *due_at <= now)
    }

    /// Removes a lane's due times up to `now`; the caller then reads the queue.
    pub(crate) fn take(&self, lane: Lane, now: Timestamp) {
        let mut lanes = self.lock();
        if let Some(hints) = lanes.get_mut(&lane) {
            hints.retain(|due_at| *due_at > now);
            if hints.is_empty() {
                lanes.remove(&lane);
            }
        }
    }

    /// Returns the next due time of a dispatcher after `now`.
    pub(crate) fn next(&self, dispatcher: DispatcherKey, now: Timestamp) -> Option<Timestamp> {
        let lanes = self.lock();
        let of_dispatcher = lanes.iter().filter(|(lane, _)| (lane.provider, lane.class) == dispatcher);
        of_dispatcher.filter_map(|(_, hints)| hints.iter().find(|due_at| **due_at > now).copied()).min()
    }

    /// Wakes a dispatcher.
    pub(crate) fn wake(&self, dispatcher: DispatcherKey) {
        self.wakeups.get(&dispatcher).into_iter().for_each(|one| one.work.notify_one());
    }

    /// Wakes all dispatchers.
    pub(crate) fn wake_all(&self) {
        self.wakeups.values().for_each(|one| one.work.notify_one());
    }

    /// Waits for the dispatcher's wake-up. One sent before the wait is not lost.
    pub(crate) async fn woken(&self, dispatcher: DispatcherKey) {
        match self.wakeups.get(&dispatcher) {
            Some(wakeups) => wakeups.work.notified().await,
            None => std::future::pending().await,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Lane, BTreeSet<Timestamp>>> {
        self.lanes.lock()
    }
}

#[cfg(test)]
mod tests {
    use stentor_core::id::{AppId, ChunkId};

    use super::*;

    const DISPATCHER: DispatcherKey = (ProviderKind::Fcm, TrafficClass::Bulk);
    const LANE: Lane =
        Lane { provider: ProviderKind::Fcm, app: AppId::from_raw(1), class: TrafficClass::Bulk };

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn ticket(due_at: i64) -> Ticket {
        Ticket { chunk: ChunkId::from_raw(1), lane: LANE, due_at: at(due_at) }
    }

    #[test]
    fn a_later_due_time_outlives_an_earlier_one() {
        let due_index = DueIndex::new();
        due_index.note(&[ticket(5), ticket(50)]);
        assert_eq!(due_index.due(DISPATCHER, at(10)), [LANE]);
        due_index.take(LANE, at(10));
        assert_eq!(due_index.due(DISPATCHER, at(10)), []);
        assert_eq!(due_index.next(DISPATCHER, at(10)), Some(at(50)));
        assert_eq!(due_index.next((ProviderKind::Apns, TrafficClass::Bulk), at(10)), None);
    }

    #[tokio::test]
    async fn a_dispatcher_is_needed_once_any_due_time_is_known() {
        let due_index = DueIndex::new();
        let needed = due_index.needed(DISPATCHER);
        tokio::pin!(needed);
        assert!(futures_util::poll!(&mut needed).is_pending());
        due_index.insert(Lane { provider: ProviderKind::Apns, ..LANE }, at(5));
        assert!(futures_util::poll!(&mut needed).is_pending(), "that is another dispatcher's");
        due_index.insert(LANE, at(i64::MAX));
        assert!(futures_util::poll!(&mut needed).is_ready());
        due_index.take(LANE, at(i64::MAX));
        assert!(!due_index.knows(DISPATCHER));
    }

    #[test]
    fn hints_are_bounded_and_the_earliest_stay() {
        let due_index = DueIndex::new();
        (0..1_000).rev().for_each(|due_at| due_index.note(&[ticket(due_at)]));
        assert_eq!(due_index.lock()[&LANE].len(), HINTS_PER_LANE_MAX_COUNT);
        assert_eq!(due_index.next(DISPATCHER, at(-1)), Some(at(0)));
    }
}
