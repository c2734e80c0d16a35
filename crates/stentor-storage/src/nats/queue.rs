//! The queue on a JetStream stream.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::Subject;
use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::pull::Batch;
use async_nats::jetstream::consumer::{Info, PullConsumer};
use async_trait::async_trait;
use futures_util::StreamExt as _;
use stentor_core::chunk::{Lane, Ticket};
use stentor_core::id::ChunkId;
use stentor_core::ports::queue::{LaneDepth, Queue, QueueAbilities, QueueError, QueueLease};
use stentor_core::time::Timestamp;
use tokio::sync::OnceCell;

use super::address::{NatsAddress, unavailable};
use super::leases::LeasedTickets;
use super::settings::NatsSettings;
use super::stream::{DONE, FRESH, GIVEN_BACK, StreamSignals, TicketStream, due_at};
use super::subject::chunk_of;

/// Tickets that are published at once: a campaign that is resumed may have any number.
const AT_ONCE_MAX_COUNT: usize = 500;
/// The longest wait of `changed`, because the end of a process is not announced.
const CHANGED_MAX: Duration = Duration::from_secs(1);
/// The time for which a stored ticket shows that others are stored, too.
const KEPT: Duration = Duration::from_secs(1);

/// A queue in a stream of NATS JetStream, which any number of processes may share.
pub struct NatsQueue {
    address: NatsAddress,
    settings: NatsSettings,
    stream: OnceCell<TicketStream>,
    leased: Mutex<LeasedTickets>,
    /// The stream sequence of the last ticket that this process published to each lane, until the server has delivered it or has lost it.
    fresh: Mutex<HashMap<Lane, u64>>,
    signals: Arc<StreamSignals>,
    /// True if tickets could not be published.
    has_missed: AtomicBool,
    kept_at: Mutex<Option<Instant>>,
}

impl NatsQueue {
    /// Uses a stream on servers. The first call connects to them; each call fails until they can be reached.
    #[must_use]
    pub fn new(address: NatsAddress, settings: NatsSettings) -> Self {
        Self {
            address,
            settings,
            stream: OnceCell::new(),
            leased: Mutex::default(),
            fresh: Mutex::default(),
            signals: Arc::default(),
            has_missed: AtomicBool::new(false),
            kept_at: Mutex::default(),
        }
    }

    async fn stream(&self) -> Result<&TicketStream, QueueError> {
        let open = || TicketStream::open(&self.address, self.settings.clone(), self.signals.clone());
        self.stream.get_or_try_init(open).await
    }

    /// Publishes tickets, and notifies waiting tasks.
    async fn put(&self, tickets: &[Ticket]) -> Result<(), QueueError> {
        let stream = self.stream().await?;
        for some in tickets.chunks(AT_ONCE_MAX_COUNT) {
            let last = stream.publish(some).await?;
            // After each portion: if a later one fails, a pull must still wait for these.
            self.fresh().extend(last);
        }
        if !tickets.is_empty() {
            *self.kept_at() = Some(Instant::now());
            // Once the server has them, because a woken task pulls at once.
            self.signals.wake();
            stream.notify_all().await;
        }
        Ok(())
    }

    fn leased(&self) -> MutexGuard<'_, LeasedTickets> {
        self.leased.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fresh(&self) -> MutexGuard<'_, HashMap<Lane, u64>> {
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.kept_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pulls tickets of a lane, and retries once if its consumer was deleted.
    async fn pull(&self, stream: &TicketStream, lane: Lane, max: usize) -> Result<Vec<Message>, QueueError> {
        let fresh = self.fresh().get(&lane).copied();
        let wait = self.settings.reply_timeout;
        let pulled = match pull(&stream.consumer(lane).await?, max, fresh, wait).await {
            Ok(pulled) => pulled,
            Err(_) => {
                stream.forget(lane);
                pull(&stream.consumer(lane).await?, max, fresh, wait).await?
            }
        };
        if pulled.len() < max || fresh <= last_number(&pulled) {
            // Not the tickets published in between.
            self.fresh().retain(|known, last| *known != lane || Some(*last) != fresh);
        }
        Ok(pulled)
    }

    /// Records a delivered ticket; a redelivery of a ticket leased here is not leased again.
    fn note(&self, lane: Lane, message: &Message, until: Timestamp) -> Option<QueueLease> {
        let reply = message.reply.clone()?;
        let due_at = due_at(&message.payload).unwrap_or_default();
        self.leased().note(Ticket { chunk: chunk_of(&message.subject)?, lane, due_at }, reply, until)
    }
}

/// Pulls the present tickets of a consumer. The consumer learns of a ticket a moment after the server has acknowledged it, so the pull
/// waits for fresh tickets.
async fn pull(
    consumer: &PullConsumer,
    max: usize,
    fresh: Option<u64>,
    wait: Duration,
) -> Result<Vec<Message>, QueueError> {
    let mut pulled = pull_now(consumer, max, wait).await?;
    while pulled.len() < max && last_number(&pulled) < fresh {
        let one = consumer.batch().max_messages(1).expires(FRESH).messages();
        let one = collect(one.await.map_err(|error| unavailable(&error))?, wait).await?;
        if one.is_empty() {
            break;
        }
        pulled.extend(one);
    }
    Ok(pulled)
}

/// Returns the largest stream sequence; `None`, which is less than any, if there is no ticket.
fn last_number(pulled: &[Message]) -> Option<u64> {
    pulled.iter().filter_map(|message| Some(message.info().ok()?.stream_sequence)).max()
}

async fn pull_now(consumer: &PullConsumer, max: usize, wait: Duration) -> Result<Vec<Message>, QueueError> {
    let batch = consumer.fetch().max_messages(max).messages();
    collect(batch.await.map_err(|error| unavailable(&error))?, wait).await
}

/// Collects the messages of a batch. A killed server does not report the end of a batch, hence the timeout.
async fn collect(mut batch: Batch, wait: Duration) -> Result<Vec<Message>, QueueError> {
    let mut pulled = Vec::new();
    let why = loop {
        match tokio::time::timeout(wait, batch.next()).await {
            Ok(Some(Ok(message))) => pulled.push(message),
            Ok(Some(Err(error))) => break error.to_string(),
            Ok(None) => return Ok(pulled),
            Err(_) => break "there is no reply".to_owned(),
        }
    };
    if pulled.is_empty() { Err(unavailable(&why)) } else { Ok(pulled) }
}

/// Computes a lane's depth from its consumer's counts, the leases that expired here, and the first undelivered ticket.
fn depth(
    lane: Lane,
    info: &Info,
    lapsed: Option<(u64, Timestamp)>,
    next: Option<Timestamp>,
) -> Option<LaneDepth> {
    let unacked = info.num_ack_pending as u64;
    let (lapsed, first) = lapsed.map_or((0, None), |(count, first)| (count.min(unacked), Some(first)));
    let ready = info.num_pending + lapsed;
    let oldest_due = first.into_iter().chain(next).min();
    let depth = LaneDepth { lane, ready, delayed: 0, leased: unacked - lapsed, oldest_due, next_due: None };
    (ready + unacked > 0).then_some(depth)
}

#[async_trait]
impl Queue for NatsQueue {
    fn abilities(&self) -> QueueAbilities {
        QueueAbilities { holds_back: false, orders: false }
    }

    async fn publish(&self, tickets: &[Ticket]) -> Result<(), QueueError> {
        let put = self.put(tickets).await;
        if put.is_err() {
            // `Relaxed`, as it publishes no other memory: it makes `depths` request everything again.
            self.has_missed.store(true, Ordering::Relaxed);
        }
        put
    }

    async fn lease(
        &self,
        lane: Lane,
        max: usize,
        lease_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<QueueLease>, QueueError> {
        let stream = self.stream().await?;
        // Given back before it is pulled, so that the server has them to give.
        let lapsed = self.leased().end_lapsed(lane, now);
        stream.say(lapsed, GIVEN_BACK).await;
        let until = now.plus(lease_for);
        let pulled = self.pull(stream, lane, max).await?;
        let mut leases: Vec<_> =
            pulled.iter().filter_map(|message| self.note(lane, message, until)).collect();
        leases.sort_unstable_by_key(|lease| (lease.ticket.due_at, lease.ticket.chunk));
        Ok(leases)
    }

    async fn extend(
        &self,
        leases: &[QueueLease],
        lease_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<bool>, QueueError> {
        let until = now.plus(lease_for);
        let replies: Vec<Option<Subject>> = {
            let mut leased = self.leased();
            leases.iter().map(|lease| leased.extend(lease, until, now)).collect()
        };
        let held = replies.iter().map(Option::is_some).collect();
        self.stream().await?.prolong(replies.into_iter().flatten().collect()).await;
        Ok(held)
    }

    async fn ack(&self, leases: Vec<QueueLease>) -> Result<(), QueueError> {
        let ended = self.leased().end(&leases);
        // Heard before it is published again, which would otherwise change nothing.
        self.stream().await?.say(ended, DONE).await;
        Ok(())
    }

    async fn nack(&self, leases: Vec<QueueLease>, _due_at: Timestamp) -> Result<(), QueueError> {
        let ended = self.leased().end(&leases);
        let stream = self.stream().await?;
        // The server must have received it before tasks are woken, which would find nothing otherwise.
        stream.say(ended, GIVEN_BACK).await;
        self.signals.wake();
        stream.notify_all().await;
        Ok(())
    }

    async fn withdraw(&self, chunks: &[ChunkId]) -> Result<(), QueueError> {
        let stream = self.stream().await?;
        for some in chunks.chunks(AT_ONCE_MAX_COUNT) {
            // Otherwise a ticket published later would be taken for the one leased here.
            self.leased().forget(some);
            stream.remove(some).await?;
        }
        Ok(())
    }

    /// The expired leases of other processes are not known: all of them count as leased until the server delivers their tickets again.
    async fn depths(&self, now: Timestamp) -> Result<Vec<LaneDepth>, QueueError> {
        let stream = self.stream().await?;
        // Recorded before the request: tickets leased in between are not missing at the server.
        let held = self.leased().tokens();
        let lanes = stream.lanes().await?;
        let is_out = |lane| lanes.iter().any(|(known, info)| *known == lane && info.num_ack_pending > 0);
        if self.leased().forget_lost(&held, is_out) > 0 {
            self.signals.emptied.notify_one();
        }
        // The server accepts tickets again, and those that it did not accept are missing.
        if self.has_missed.swap(false, Ordering::Relaxed) {
            self.signals.emptied.notify_one();
        }
        let lapsed = self.leased().lapsed(now);
        let mut depths = Vec::new();
        for (lane, info) in lanes {
            let next = if info.num_pending > 0 { stream.first_due(lane, &info).await } else { None };
            depths.extend(depth(lane, &info, lapsed.get(&lane).copied(), next));
        }
        depths.sort_unstable_by_key(|depth| depth.lane);
        Ok(depths)
    }

    async fn keeps(&self) -> Result<(), QueueError> {
        if self.kept_at().is_some_and(|at| at.elapsed() < KEPT) {
            return Ok(());
        }
        self.stream().await?.try_to_write().await?;
        *self.kept_at() = Some(Instant::now());
        Ok(())
    }

    /// It has no part that ends: a connection that is lost is opened again.
    async fn broken(&self) -> String {
        std::future::pending().await
    }

    /// Detected by a missing stream, by leases unknown to the server, and by the server's return after tickets could not be published.
    async fn emptied(&self) {
        self.signals.emptied.notified().await;
    }

    async fn clear(&self) -> Result<(), QueueError> {
        // First, as in `withdraw`.
        self.leased().clear();
        self.stream().await?.purge().await
    }

    async fn changed(&self) {
        // Running out of time is a reason to look, like any other.
        let _ = tokio::time::timeout(CHANGED_MAX, self.signals.changes.notified()).await;
    }
}

impl std::fmt::Debug for NatsQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("NatsQueue").field(&self.address).finish()
    }
}
