use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use stentor_core::chunk::{Lane, Ticket};
use stentor_core::id::ChunkId;
use stentor_core::ports::queue::{LaneDepth, Queue, QueueError, QueueLease};
use stentor_core::time::Timestamp;
use tokio::sync::Notify;

/// A queue in memory.
#[derive(Debug, Default)]
pub struct MemoryQueue {
    state: Mutex<QueueTables>,
    changes: Notify,
}

#[derive(Debug, Default)]
struct QueueTables {
    entries: HashMap<ChunkId, QueueRow>,
    /// Tickets in the order in which they are leased.
    lanes: BTreeMap<Lane, BTreeSet<(Timestamp, ChunkId)>>,
    last_token: u64,
}

#[derive(Debug)]
struct QueueRow {
    ticket: Ticket,
    lease: Option<QueueLeaseRow>,
}

#[derive(Debug, Clone, Copy)]
struct QueueLeaseRow {
    token: u64,
    until: Timestamp,
}

impl MemoryQueue {
    /// Starts empty.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, QueueTables> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all who wait, and the next who comes when nobody does.
    fn wake(&self) {
        self.changes.notify_waiters();
        self.changes.notify_one();
    }
}

#[async_trait]
impl Queue for MemoryQueue {
    async fn publish(&self, tickets: &[Ticket]) -> Result<(), QueueError> {
        let mut state = self.lock();
        tickets.iter().for_each(|ticket| state.put(*ticket));
        // Whoever is woken looks at it at once.
        drop(state);
        self.wake();
        Ok(())
    }

    async fn lease(
        &self,
        lane: Lane,
        max: usize,
        lease_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<QueueLease>, QueueError> {
        Ok(self.lock().lease(lane, max, now.plus(lease_for), now))
    }

    async fn extend(
        &self,
        leases: &[QueueLease],
        lease_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<bool>, QueueError> {
        let mut state = self.lock();
        Ok(leases.iter().map(|lease| state.extend(lease, now.plus(lease_for), now)).collect())
    }

    async fn ack(&self, leases: Vec<QueueLease>) -> Result<(), QueueError> {
        let mut state = self.lock();
        for lease in leases.iter().filter(|lease| state.held(lease).is_some()).collect::<Vec<_>>() {
            state.remove(lease.ticket.chunk);
        }
        Ok(())
    }

    async fn nack(&self, leases: Vec<QueueLease>, due_at: Timestamp) -> Result<(), QueueError> {
        let mut state = self.lock();
        for lease in leases.iter().filter(|lease| state.held(lease).is_some()).collect::<Vec<_>>() {
            state.remove(lease.ticket.chunk);
            // Only once it is out: `put` leaves a ticket that is there as it is.
            state.put(Ticket { due_at, ..lease.ticket });
        }
        drop(state);
        self.wake();
        Ok(())
    }

    async fn withdraw(&self, chunks: &[ChunkId]) -> Result<(), QueueError> {
        let mut state = self.lock();
        chunks.iter().for_each(|chunk| state.remove(*chunk));
        Ok(())
    }

    async fn depths(&self, now: Timestamp) -> Result<Vec<LaneDepth>, QueueError> {
        Ok(self.lock().depths(now))
    }

    async fn keeps(&self) -> Result<(), QueueError> {
        Ok(())
    }

    async fn broken(&self) -> String {
        std::future::pending().await
    }

    async fn clear(&self) -> Result<(), QueueError> {
        let mut state = self.lock();
        state.entries.clear();
        state.lanes.clear();
        Ok(())
    }

    async fn changed(&self) {
        self.changes.notified().await;
    }
}

impl QueueTables {
    fn put(&mut self, ticket: Ticket) {
        if self.entries.contains_key(&ticket.chunk) {
            return;
        }
        self.lanes.entry(ticket.lane).or_default().insert((ticket.due_at, ticket.chunk));
        self.entries.insert(ticket.chunk, QueueRow { ticket, lease: None });
    }

    fn remove(&mut self, chunk: ChunkId) {
        let Some(QueueRow { ticket, .. }) = self.entries.remove(&chunk) else { return };
        if let Some(lane) = self.lanes.get_mut(&ticket.lane) {
            lane.remove(&(ticket.due_at, chunk));
            if lane.is_empty() {
                self.lanes.remove(&ticket.lane);
            }
        }
    }

    fn lease(&mut self, lane: Lane, max: usize, until: Timestamp, now: Timestamp) -> Vec<QueueLease> {
        let Self { entries, lanes, last_token } = self;
        let waiting = lanes.get(&lane).into_iter().flatten().take_while(|(due_at, _)| *due_at <= now);
        let mut taken = Vec::new();
        for (_, chunk) in waiting {
            if taken.len() == max {
                break;
            }
            if let Some(entry) = entries.get_mut(chunk).filter(|entry| entry.is_free(now)) {
                *last_token += 1;
                entry.lease = Some(QueueLeaseRow { token: *last_token, until });
                taken.push(QueueLease { ticket: entry.ticket, token: *last_token });
            }
        }
        taken
    }

    fn extend(&mut self, lease: &QueueLease, until: Timestamp, now: Timestamp) -> bool {
        let held = self.held(lease).filter(|held| held.until > now);
        held.map(|held| held.until = until).is_some()
    }

    fn held(&mut self, lease: &QueueLease) -> Option<&mut QueueLeaseRow> {
        let held = self.entries.get_mut(&lease.ticket.chunk)?.lease.as_mut();
        held.filter(|held| held.token == lease.token)
    }

    fn depths(&self, now: Timestamp) -> Vec<LaneDepth> {
        let entries = |tickets: &BTreeSet<(Timestamp, ChunkId)>| {
            tickets.iter().filter_map(|(_, chunk)| self.entries.get(chunk)).collect::<Vec<_>>()
        };
        self.lanes.iter().map(|(lane, tickets)| depth(*lane, &entries(tickets), now)).collect()
    }
}

impl QueueRow {
    fn is_free(&self, now: Timestamp) -> bool {
        self.lease.is_none_or(|held| held.until <= now)
    }
}

fn depth(lane: Lane, entries: &[&QueueRow], now: Timestamp) -> LaneDepth {
    let mut depth = LaneDepth { lane, ready: 0, delayed: 0, leased: 0, oldest_due: None, next_due: None };
    for entry in entries {
        let due_at = entry.ticket.due_at;
        if !entry.is_free(now) {
            depth.leased += 1;
        } else if due_at <= now {
            depth.ready += 1;
            depth.oldest_due = Some(depth.oldest_due.map_or(due_at, |oldest| oldest.min(due_at)));
        } else {
            depth.delayed += 1;
            depth.next_due = Some(depth.next_due.map_or(due_at, |next| next.min(due_at)));
        }
    }
    depth
}
