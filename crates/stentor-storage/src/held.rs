//! Holding back of tickets until they are due, for engines that cannot delay tickets.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use stentor_core::chunk::{Lane, Ticket};
use stentor_core::id::ChunkId;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::queue::{LaneDepth, Queue, QueueAbilities, QueueError, QueueLease};
use stentor_core::time::Timestamp;
use tokio::sync::Notify;

/// A queue over an engine that cannot delay tickets: they wait in the memory of this process until they are due.
///
/// The tickets held here are lost with the process, like everything in a queue. The store has their chunks, and they are published again.
pub struct HeldQueue<Q> {
    engine: Q,
    clock: Arc<dyn Clock>,
    held: Mutex<HeldTickets>,
    changes: Notify,
}

#[derive(Default)]
struct HeldTickets {
    tickets: HashMap<ChunkId, Ticket>,
    lanes: BTreeMap<Lane, BTreeSet<(Timestamp, ChunkId)>>,
}

impl<Q: Queue> HeldQueue<Q> {
    /// Wraps an engine. The clock is needed because `publish` gets no time.
    pub fn over(engine: Q, clock: Arc<dyn Clock>) -> Self {
        Self { engine, clock, held: Mutex::default(), changes: Notify::new() }
    }

    fn held(&self) -> MutexGuard<'_, HeldTickets> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes the due tickets of one lane or of all to the engine.
    async fn release(&self, lane: Option<Lane>, now: Timestamp) -> Result<(), QueueError> {
        let due = self.held().take_due(lane, now);
        if due.is_empty() {
            return Ok(());
        }
        let published = self.engine.publish(&due).await;
        // Removed before they are published, so that two concurrent callers do not both publish them; restored if publishing fails.
        if published.is_err() {
            self.held().put_all(&due);
        }
        published
    }

    /// Holds tickets back, and wakes the task that waits in `changed` for their due times.
    fn hold(&self, tickets: &[Ticket]) {
        if !tickets.is_empty() {
            self.held().put_all(tickets);
            self.changes.notify_waiters();
            // The permit is for a task between two waits: `notify_waiters` stores none.
            self.changes.notify_one();
        }
    }
}

#[async_trait]
impl<Q: Queue> Queue for HeldQueue<Q> {
    fn abilities(&self) -> QueueAbilities {
        QueueAbilities { holds_back: true, ..self.engine.abilities() }
    }

    async fn publish(&self, tickets: &[Ticket]) -> Result<(), QueueError> {
        let now = self.clock.now();
        let (due, later): (Vec<Ticket>, Vec<Ticket>) = {
            // Released with the block: `hold` takes it again.
            let held = self.held();
            let new = tickets.iter().filter(|ticket| !held.tickets.contains_key(&ticket.chunk));
            new.partition(|ticket| ticket.due_at <= now)
        };
        self.hold(&later);
        if due.is_empty() { Ok(()) } else { self.engine.publish(&due).await }
    }

    async fn lease(
        &self,
        lane: Lane,
        max: usize,
        lease_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<QueueLease>, QueueError> {
        // First, because the engine leases only tickets that were published to it.
        self.release(Some(lane), now).await?;
        self.engine.lease(lane, max, lease_for, now).await
    }

    async fn extend(
        &self,
        leases: &[QueueLease],
        lease_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<bool>, QueueError> {
        self.engine.extend(leases, lease_for, now).await
    }

    async fn ack(&self, leases: Vec<QueueLease>) -> Result<(), QueueError> {
        self.engine.ack(leases).await
    }

    /// If a lease was lost in between, a second ticket of its chunk may be held. It is found void once it is leased.
    async fn nack(&self, leases: Vec<QueueLease>, due_at: Timestamp) -> Result<(), QueueError> {
        if due_at <= self.clock.now() {
            return self.engine.nack(leases, due_at).await;
        }
        let tickets: Vec<_> = leases.iter().map(|lease| Ticket { due_at, ..lease.ticket }).collect();
        // Out of the engine before it may be put in again, which would otherwise change nothing.
        let acked = self.engine.ack(leases).await;
        self.hold(&tickets);
        acked
    }

    async fn withdraw(&self, chunks: &[ChunkId]) -> Result<(), QueueError> {
        {
            let mut held = self.held();
            // Before the engine's: a release in between would put it in behind that removal.
            chunks.iter().for_each(|chunk| held.remove(*chunk));
        }
        self.engine.withdraw(chunks).await
    }

    async fn depths(&self, now: Timestamp) -> Result<Vec<LaneDepth>, QueueError> {
        self.release(None, now).await?;
        let mut depths = self.engine.depths(now).await?;
        // After the release: due tickets count in the engine only.
        self.held().add_to(&mut depths);
        Ok(depths)
    }

    async fn keeps(&self) -> Result<(), QueueError> {
        self.engine.keeps().await
    }

    async fn broken(&self) -> String {
        self.engine.broken().await
    }

    async fn emptied(&self) {
        self.engine.emptied().await;
    }

    async fn clear(&self) -> Result<(), QueueError> {
        // First, as in `withdraw`.
        *self.held() = HeldTickets::default();
        self.engine.clear().await
    }

    async fn changed(&self) {
        tokio::select! {
            () = self.engine.changed() => {}
            () = self.changes.notified() => {}
        }
    }
}

impl HeldTickets {
    /// Holds tickets; for a chunk that is held already, the first due time stays.
    fn put_all(&mut self, tickets: &[Ticket]) {
        for ticket in tickets {
            if self.tickets.contains_key(&ticket.chunk) {
                continue;
            }
            self.lanes.entry(ticket.lane).or_default().insert((ticket.due_at, ticket.chunk));
            self.tickets.insert(ticket.chunk, *ticket);
        }
    }

    fn remove(&mut self, chunk: ChunkId) {
        let Some(ticket) = self.tickets.remove(&chunk) else { return };
        if let Some(lane) = self.lanes.get_mut(&ticket.lane) {
            lane.remove(&(ticket.due_at, chunk));
            if lane.is_empty() {
                self.lanes.remove(&ticket.lane);
            }
        }
    }

    /// Removes and returns the due tickets, in order.
    fn take_due(&mut self, lane: Option<Lane>, now: Timestamp) -> Vec<Ticket> {
        let lanes: Vec<Lane> = match lane {
            Some(lane) => vec![lane],
            None => self.lanes.keys().copied().collect(),
        };
        let mut due = Vec::new();
        for lane in lanes {
            let waiting = self.lanes.get(&lane).into_iter().flatten();
            let ready = waiting.take_while(|(due_at, _)| *due_at <= now);
            due.extend(ready.filter_map(|(_, chunk)| self.tickets.get(chunk).copied()));
        }
        due.iter().for_each(|ticket| self.remove(ticket.chunk));
        due
    }

    /// Adds the held tickets to the depths of the engine.
    fn add_to(&self, depths: &mut Vec<LaneDepth>) {
        for (lane, waiting) in &self.lanes {
            let place = depths.iter().position(|depth| depth.lane == *lane).unwrap_or_else(|| {
                depths.push(LaneDepth {
                    lane: *lane,
                    ready: 0,
                    delayed: 0,
                    leased: 0,
                    oldest_due: None,
                    next_due: None,
                });
                depths.len() - 1
            });
            depths[place].delayed += waiting.len() as u64;
            depths[place].next_due = waiting.first().map(|(due_at, _)| *due_at);
        }
    }
}
