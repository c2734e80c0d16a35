//! Admission control: each app gets an equal share of the queue. Chunks that cannot be sent have a smaller limit of their own.
//!
//! While the queue is below its limit, no app is refused. At the limit, only apps that hold an equal share or more are refused. An app with
//! less than its share is still admitted, so the queue can exceed its limit by the shares of the apps that came later. Chunks are counted
//! separately, with one share per credential, while their credential is missing or refused or their push service rests. They do not use up
//! the room of other apps.

use std::collections::{HashMap, HashSet};

use parking_lot::{Mutex, MutexGuard};
use stentor_core::chunk::{Lane, Ticket};
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::ports::queue::LaneDepth;

use super::provider_table::ProviderKey;

/// Chunk counts of the queue by app and credential: the counts of the last reading, adjusted for chunks added and removed since.
pub(crate) struct AdmissionControl {
    queued_max_chunks: u64,
    parked_max_chunks: u64,
    counts: Mutex<QueueCounts>,
}

#[derive(Default)]
struct QueueCounts {
    /// Chunks that can be sent.
    open: HashMap<AppId, u64>,
    open_sum: u64,
    /// Chunks of credentials that rest.
    parked: HashMap<ProviderKey, u64>,
    parked_sum: u64,
    /// Credentials that rest.
    resting: HashSet<ProviderKey>,
}

/// The number of messages that are accepted and not begun: in total, and of one app.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BacklogSize {
    pub(crate) of_all: u64,
    pub(crate) of_app: u64,
}

/// A credential that rests and has reached its limit of waiting chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullLane {
    /// The push service of the credential.
    pub provider: ProviderKind,
    /// The number of waiting chunks.
    pub chunks: u64,
    /// The reason why the credential rests.
    pub detail: String,
}

impl AdmissionControl {
    /// Limits the queue to `queued_max_chunks`, and the chunks of resting credentials to `parked_max_chunks`.
    pub(crate) fn new(queued_max_chunks: u64, parked_max_chunks: u64) -> Self {
        Self { queued_max_chunks, parked_max_chunks: parked_max_chunks.max(1), counts: Mutex::default() }
    }

    /// Counts chunks on their way to the queue.
    pub(crate) fn note(&self, tickets: &[Ticket]) {
        let mut counts = self.lock();
        tickets.iter().for_each(|ticket| counts.add((ticket.lane.app, ticket.lane.provider), 1));
    }

    /// Counts chunks that are taken off the queue.
    pub(crate) fn note_gone(&self, lanes: impl Iterator<Item = Lane>) {
        let mut counts = self.lock();
        lanes.for_each(|lane| counts.subtract((lane.app, lane.provider)));
    }

    /// Replaces the counts by the current depths of the queue.
    pub(crate) fn count(&self, depths: &[LaneDepth], resting: HashSet<ProviderKey>) {
        let mut fresh = QueueCounts { resting, ..QueueCounts::default() };
        for LaneDepth { lane, ready, delayed, leased, .. } in depths {
            fresh.add((lane.app, lane.provider), ready + delayed + leased);
        }
        // Replaced in one step, so that callers of `is_open_to` never see half-built counts.
        *self.lock() = fresh;
    }

    /// Returns true if an app may queue more chunks that can be sent.
    pub(crate) fn is_open_to(&self, app: AppId, backlog: BacklogSize) -> bool {
        let counts = self.lock();
        let own = counts.open.get(&app).copied().unwrap_or_default();
        let others = counts.open.len() - usize::from(own > 0);
        let own = own + backlog.of_app;
        counts.open_sum + backlog.of_all < self.queued_max_chunks
            || own < share(self.queued_max_chunks, others)
    }

    /// Returns the number of chunks that wait for a resting credential if no more are allowed, or `None`.
    pub(crate) fn full_lane(&self, key: ProviderKey) -> Option<u64> {
        let counts = self.lock();
        let own = counts.parked.get(&key).copied().filter(|_| counts.parked_sum >= self.parked_max_chunks)?;
        (own >= share(self.parked_max_chunks, counts.parked.len() - 1)).then_some(own)
    }

    fn lock(&self) -> MutexGuard<'_, QueueCounts> {
        self.counts.lock()
    }
}

impl QueueCounts {
    fn add(&mut self, key: ProviderKey, chunks: u64) {
        if chunks == 0 {
            return;
        }
        if self.resting.contains(&key) {
            *self.parked.entry(key).or_default() += chunks;
            self.parked_sum += chunks;
        } else {
            *self.open.entry(key.0).or_default() += chunks;
            self.open_sum += chunks;
        }
    }

    /// Ignores a chunk that is not counted under this key; the next call of `count` corrects the numbers.
    fn subtract(&mut self, key: ProviderKey) {
        if self.resting.contains(&key) {
            self.parked_sum -= u64::from(take_one(&mut self.parked, &key));
        } else {
            self.open_sum -= u64::from(take_one(&mut self.open, &key.0));
        }
    }
}

/// Decrements a count and removes it at zero. Returns false if there was no count.
fn take_one<K: Eq + std::hash::Hash>(counts: &mut HashMap<K, u64>, key: &K) -> bool {
    let Some(count) = counts.get_mut(key) else { return false };
    *count -= 1;
    if *count == 0 {
        counts.remove(key);
    }
    true
}

/// Returns an equal share of `max` beside `others` other holders; at least 1.
fn share(max: u64, others: usize) -> u64 {
    (max / (others as u64 + 1)).max(1)
}

#[cfg(test)]
mod tests {
    use stentor_core::chunk::TrafficClass;
    use stentor_core::id::ChunkId;
    use stentor_core::time::Timestamp;

    use super::*;

    const NONE: BacklogSize = BacklogSize { of_all: 0, of_app: 0 };

    fn app(raw: u64) -> AppId {
        AppId::from_raw(raw)
    }

    fn tickets(app: u64, count: u64) -> Vec<Ticket> {
        let lane =
            Lane { provider: ProviderKind::Fcm, app: AppId::from_raw(app), class: TrafficClass::Urgent };
        let ticket = |chunk| Ticket { chunk: ChunkId::from_raw(chunk), lane, due_at: Timestamp::default() };
        (0..count).map(ticket).collect()
    }

    fn depth(app: u64, ready: u64) -> LaneDepth {
        let lane = tickets(app, 1)[0].lane;
        LaneDepth { lane, ready, delayed: 0, leased: 0, oldest_due: None, next_due: None }
    }

    /// Queues chunks for an app until it is refused, and returns their number.
    fn fill(room: &AdmissionControl, raw: u64) -> u64 {
        let mut got = 0;
        while room.is_open_to(app(raw), NONE) {
            room.note(&tickets(raw, 1));
            got += 1;
        }
        got
    }

    #[test]
    fn one_app_alone_gets_everything_and_who_comes_later_an_equal_share() {
        let room = AdmissionControl::new(120, 60);
        assert_eq!([1, 2, 3, 1, 2].map(|app| fill(&room, app)), [120, 60, 40, 0, 0]);
    }

    #[test]
    fn what_cannot_be_sent_stands_in_nobodys_way_and_has_a_bound_of_its_own() {
        let room = AdmissionControl::new(120, 60);
        let key = |raw| (app(raw), ProviderKind::Fcm);
        room.count(&[depth(1, 60), depth(2, 29)], HashSet::from([key(1), key(2)]));
        assert_eq!((room.full_lane(key(1)), room.full_lane(key(2))), (Some(60), None));
        room.note(&tickets(2, 1));
        assert_eq!((room.full_lane(key(2)), room.full_lane(key(3))), (Some(30), None));
        assert_eq!(fill(&room, 3), 120);
        room.count(&[depth(1, 60)], HashSet::new());
        assert_eq!(room.full_lane(key(1)), None, "it can be sent again");
    }

    #[test]
    fn what_is_taken_off_the_queue_makes_room_at_once() {
        let room = AdmissionControl::new(2, 1);
        room.note(&tickets(1, 2));
        assert!(!room.is_open_to(app(1), NONE));
        room.note_gone(tickets(1, 1).iter().map(|ticket| ticket.lane));
        assert!(room.is_open_to(app(1), NONE));
        room.note_gone(tickets(1, 9).iter().chain(&tickets(2, 9)).map(|ticket| ticket.lane));
        assert_eq!((fill(&room, 2), fill(&room, 1)), (2, 1), "there are no fewer than none");
    }

    #[test]
    fn what_is_accepted_and_not_begun_counts_as_queued() {
        let room = AdmissionControl::new(120, 60);
        room.note(&tickets(2, 10));
        let greedy = BacklogSize { of_all: 110, of_app: 110 };
        assert!(!room.is_open_to(app(1), greedy));
        assert!(room.is_open_to(app(2), BacklogSize { of_app: 0, ..greedy }));
        assert!(room.is_open_to(app(1), BacklogSize { of_all: 109, of_app: 109 }));
    }
}
