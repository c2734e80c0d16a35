//! Who may queue how much: each app its equal share of the queue, and what cannot be sent a smaller one of its own.
//!
//! While the queue is not full nobody is refused. Once it is, only those are who hold an equal share or more: whoever holds
//! less still finds room, so that the queue exceeds its limit by the shares of those who came later. Chunks whose credential
//! is missing or refused, or whose push service rests, count apart, each credential its share: they stand in nobody's way.

use std::collections::{HashMap, HashSet};

use parking_lot::{Mutex, MutexGuard};
use stentor_core::chunk::{Lane, Ticket};
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::ports::queue::LaneDepth;

use super::provider_table::ProviderKey;

/// The counts of the queue by app and credential: as many as it said when last asked, with those that came and went since.
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
    /// Which credentials rest.
    resting: HashSet<ProviderKey>,
}

/// What is accepted and not begun, and the app's part of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BacklogSize {
    pub(crate) of_all: u64,
    pub(crate) of_app: u64,
}

/// A credential that rests, with as many chunks as may wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullLane {
    /// At which push service.
    pub provider: ProviderKind,
    /// How many chunks wait.
    pub chunks: u64,
    /// Why it rests.
    pub detail: String,
}

impl AdmissionControl {
    /// Allows so many chunks, and apart from them so many of credentials that rest.
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

    /// Counts anew what the queue holds.
    pub(crate) fn count(&self, depths: &[LaneDepth], resting: HashSet<ProviderKey>) {
        let mut fresh = QueueCounts { resting, ..QueueCounts::default() };
        for LaneDepth { lane, ready, delayed, leased, .. } in depths {
            fresh.add((lane.app, lane.provider), ready + delayed + leased);
        }
        // Put in place at once: whoever asks for room must not meet counts that are half made.
        *self.lock() = fresh;
    }

    /// Returns whether an app may queue more of what can be sent.
    pub(crate) fn is_open_to(&self, app: AppId, backlog: BacklogSize) -> bool {
        let counts = self.lock();
        let own = counts.open.get(&app).copied().unwrap_or_default();
        let others = counts.open.len() - usize::from(own > 0);
        let own = own + backlog.of_app;
        counts.open_sum + backlog.of_all < self.queued_max_chunks
            || own < share(self.queued_max_chunks, others)
    }

    /// Returns how many chunks wait for a credential that rests, if no more may.
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

    /// What is not where it was counted is counted anew with the next look.
    fn subtract(&mut self, key: ProviderKey) {
        if self.resting.contains(&key) {
            self.parked_sum -= u64::from(take_one(&mut self.parked, &key));
        } else {
            self.open_sum -= u64::from(take_one(&mut self.open, &key.0));
        }
    }
}

/// Takes one off a count, which is forgotten at nothing; returns whether there was one.
fn take_one<K: Eq + std::hash::Hash>(counts: &mut HashMap<K, u64>, key: &K) -> bool {
    let Some(count) = counts.get_mut(key) else { return false };
    *count -= 1;
    if *count == 0 {
        counts.remove(key);
    }
    true
}

/// Returns the part of one beside so many others; it is never nothing.
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

    /// Counts how much an app gets that asks until it is refused.
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
