//! The stream of tickets: created if it does not exist, and again if it was deleted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream::Context;
use async_nats::jetstream::consumer::{AckPolicy, Info, PullConsumer, pull};
use async_nats::jetstream::context::{ContextBuilder, PublishAckFuture, PublishError};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, Stream};
use async_nats::{Client, Subject};
use futures_util::future::{join_all, try_join_all};
use futures_util::{StreamExt as _, TryStreamExt as _};
use stentor_core::chunk::{Lane, Ticket};
use stentor_core::id::ChunkId;
use stentor_core::ports::queue::QueueError;
use stentor_core::time::Timestamp;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::address::{NatsAddress, unavailable};
use super::codes::described;
use super::settings::NatsSettings;
use super::subject::{Subjects, consumer, lane_of};

/// Lanes that one stream can have: an app has two at each push service.
const LANES_MAX_COUNT: i32 = 100_000;
/// The time after which the server deletes the consumer of an unused lane, so that those of removed apps do not stay. It is created again
/// when it is needed.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3_600);
/// The longest wait until a consumer knows of a ticket in the stream.
pub(super) const FRESH: Duration = Duration::from_millis(100);
const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(5);
/// Replies to the server about a ticket: it is in progress, or it is given back.
pub(super) const WORKED_ON: &str = "+WPI";
pub(super) const GIVEN_BACK: &str = "-NAK";
/// The reply that a ticket is done.
pub(super) const DONE: &str = "+ACK";
/// The server's error message for a ticket that it already has.
const IS_THERE: &str = "maximum messages per subject exceeded";

/// Signals of a stream to waiting tasks.
#[derive(Default)]
pub(super) struct StreamSignals {
    /// Tickets were published, by this or another process.
    pub(super) changes: Notify,
    /// The tickets were lost.
    pub(super) emptied: Notify,
}

/// A connection with its stream.
pub(super) struct TicketStream {
    client: Client,
    subjects: Subjects,
    context: Context,
    settings: NatsSettings,
    consumers: Mutex<HashMap<Lane, PullConsumer>>,
    signals: Arc<StreamSignals>,
    listening: JoinHandle<()>,
}

/// A ticket to be published, with the id by which the server knows its repetition.
struct Publication {
    lane: Lane,
    subject: String,
    id: String,
    due_at_ms: i64,
}

impl TicketStream {
    /// Connects, and creates the stream if it does not exist.
    pub(super) async fn open(
        address: &NatsAddress,
        settings: NatsSettings,
        signals: Arc<StreamSignals>,
    ) -> Result<Self, QueueError> {
        let client = address.connect(settings.reply_timeout).await?;
        let context = ContextBuilder::new().timeout(settings.reply_timeout).build(client.clone());
        let subjects = Subjects::new(settings.stream.clone());
        // Before the stream is used, so that no announcement after the first pull is missed.
        let mut wakes = client.subscribe(subjects.wake()).await.map_err(|error| unavailable(&error))?;
        let woken = signals.clone();
        let listening = tokio::spawn(async move {
            while wakes.next().await.is_some() {
                woken.wake();
            }
        });
        let consumers = Mutex::default();
        let stream = Self { client, subjects, context, settings, consumers, signals, listening };
        stream.make().await?;
        Ok(stream)
    }

    /// Creates the stream again if it was deleted, and signals the loss.
    async fn make_again(&self) -> Result<(), QueueError> {
        if self.make().await?.cached_info().state.last_sequence == 0 {
            // A stream that another process has created and filled since has lost nothing.
            self.signals.emptied.notify_one();
        }
        Ok(())
    }

    /// Creates the stream if it does not exist.
    async fn make(&self) -> Result<Stream, QueueError> {
        // Consumers went with the stream.
        self.consumers().clear();
        let config = Config {
            name: self.subjects.stream().to_owned(),
            subjects: self.subjects.all(),
            description: Some("chunks that wait to be sent; may be emptied at any time".to_owned()),
            // An acked ticket must leave the stream, or its chunk could never be published again.
            retention: RetentionPolicy::WorkQueue,
            // One message a subject, and the first one stays.
            discard: DiscardPolicy::New,
            discard_new_per_subject: true,
            max_messages_per_subject: 1,
            max_messages: -1,
            // Each lane is one; the server's own bound is 1,000.
            max_consumers: LANES_MAX_COUNT,
            max_bytes: -1,
            num_replicas: self.settings.replicas_count,
            ..Config::default()
        };
        self.context.get_or_create_stream(config).await.map_err(|error| described(&error))
    }

    /// Executes work with the stream, and repeats it once if the stream was deleted.
    async fn with<T, E, W>(&self, work: impl Fn(Stream<()>) -> W) -> Result<T, QueueError>
    where
        W: Future<Output = Result<T, E>>,
        E: std::fmt::Display,
    {
        let stream = || self.context.get_stream_no_info(self.subjects.stream());
        let handle = stream().await.map_err(|error| unavailable(&error))?;
        if let Ok(done) = work(handle).await {
            return Ok(done);
        }
        self.make_again().await?;
        let handle = stream().await.map_err(|error| unavailable(&error))?;
        work(handle).await.map_err(|error| described(&error))
    }

    /// Publishes tickets, leaving existing ones as they are; returns the sequence of each lane's last ticket.
    pub(super) async fn publish(&self, tickets: &[Ticket]) -> Result<HashMap<Lane, u64>, QueueError> {
        // Before the tickets: no list of depths has a lane without a consumer, and others would not learn of it.
        for lane in lanes(tickets) {
            self.consumer(lane).await?;
        }
        let publications = tickets.iter().map(|ticket| Publication {
            lane: ticket.lane,
            subject: self.subjects.ticket(ticket.lane, ticket.chunk),
            // New for each call: otherwise the server would take a republished chunk for a repetition of the first publication.
            id: format!("{}-{}", ticket.chunk.raw(), self.client.new_inbox()),
            due_at_ms: ticket.due_at.as_millis(),
        });
        let publications: Vec<_> = publications.collect();
        let mut last = HashMap::new();
        let failed = self.try_to_publish(&publications, &mut last).await;
        if failed.is_empty() {
            return Ok(last);
        }
        // The stream may have been deleted, or a reply lost: the server recognizes by the ids the tickets that it has.
        self.make_again().await?;
        let again: Vec<_> = failed.into_iter().map(|(publication, _)| publication).collect();
        let failed = self.try_to_publish(&again, &mut last).await;
        failed.first().map_or(Ok(last), |(_, why)| Err(described(why)))
    }

    /// Publishes all tickets at once and records the last sequence of each lane; returns the failed ones.
    async fn try_to_publish(
        &self,
        publications: &[Publication],
        last: &mut HashMap<Lane, u64>,
    ) -> Vec<(Publication, String)> {
        let mut sent = Vec::with_capacity(publications.len());
        for one in publications {
            // One after the other, so that they stand in this order.
            sent.push(self.send(one).await);
        }
        let replies = join_all(sent.into_iter().map(async |sent| sent?.await)).await;
        let mut failed = Vec::new();
        for (one, reply) in publications.iter().zip(replies) {
            match reply {
                // A ticket that the server already had may have been delivered before.
                Ok(published) if published.duplicate => {}
                Ok(published) => _ = last.insert(one.lane, published.sequence),
                Err(error) => failed.extend(refusal(&error).map(|why| (one.again(), why))),
            }
        }
        failed
    }

    async fn send(&self, one: &Publication) -> Result<PublishAckFuture, PublishError> {
        let message = PublishMessage::build().payload(one.due_at_ms.to_string().into()).message_id(&one.id);
        self.context.send_publish(one.subject.clone(), message).await
    }

    /// Writes something of no meaning, and removes it.
    pub(super) async fn try_to_write(&self) -> Result<(), QueueError> {
        let trial = || async { self.context.publish(self.subjects.trial(), Vec::new().into()).await?.await };
        let refused = trial().await.err().and_then(|error| refusal(&error));
        if let Some(why) = refused {
            self.make_again().await?;
            trial().await.map_err(|_| described(&why))?;
        }
        let trial = self.subjects.trial();
        let purge = |stream: Stream<()>| {
            let trial = trial.clone();
            async move { stream.purge().filter(trial).await }
        };
        self.with(purge).await.map(drop)
    }

    /// Removes the tickets of some chunks, leased or not.
    pub(super) async fn remove(&self, chunks: &[ChunkId]) -> Result<(), QueueError> {
        let removals = chunks.iter().map(|chunk| {
            let subject = self.subjects.of_chunk(*chunk);
            let purge = move |stream: Stream<()>| {
                let subject = subject.clone();
                async move { stream.purge().filter(subject).await }
            };
            self.with(purge)
        });
        try_join_all(removals).await.map(drop)
    }

    /// Removes all tickets.
    pub(super) async fn purge(&self) -> Result<(), QueueError> {
        self.with(|stream| async move { stream.purge().await }).await.map(drop)
    }

    /// Lists the consumers of all lanes as known to the server, and drops others from the cache. A consumer learns of a ticket a moment
    /// after the stream has it: they are queried again for a short while, until they know all tickets.
    pub(super) async fn lanes(&self) -> Result<Vec<(Lane, Info)>, QueueError> {
        let began = Instant::now();
        loop {
            // Counted before: tickets published in between may be known to consumers, but need not be.
            let count = self.with(|stream| async move { stream.get_info().await }).await?.state.messages;
            let infos = self.infos().await?;
            let known: u64 = infos.iter().map(|info| info.num_pending + info.num_ack_pending as u64).sum();
            if known >= count || began.elapsed() > FRESH {
                let lanes = infos.into_iter().filter_map(|info| Some((lane_of(&info.name)?, info)));
                let lanes: Vec<_> = lanes.collect();
                self.consumers().retain(|lane, _| lanes.iter().any(|(known, _)| known == lane));
                return Ok(lanes);
            }
            tokio::time::sleep(ASKED_AGAIN_AFTER).await;
        }
    }

    async fn infos(&self) -> Result<Vec<Info>, QueueError> {
        self.with(|stream| async move { stream.consumers().try_collect().await }).await
    }

    /// Returns the due time of a lane's first undelivered ticket.
    pub(super) async fn first_due(&self, lane: Lane, info: &Info) -> Option<Timestamp> {
        let stream = self.context.get_stream_no_info(self.subjects.stream()).await.ok()?;
        let next = info.delivered.stream_sequence + 1;
        let message = stream.get_first_raw_message_by_subject(self.subjects.lane(lane), next).await.ok()?;
        due_at(&message.payload)
    }

    /// Notifies all processes that something was put in.
    pub(super) async fn notify_all(&self) {
        // A process that misses it checks by itself now and then.
        let _ = self.client.publish(self.subjects.wake(), Vec::new().into()).await;
    }

    /// Returns the consumer of a lane, and creates it if needed.
    pub(super) async fn consumer(&self, lane: Lane) -> Result<PullConsumer, QueueError> {
        if let Some(known) = self.consumers().get(&lane) {
            return Ok(known.clone());
        }
        let config = pull::Config {
            durable_name: Some(consumer(lane)),
            filter_subject: self.subjects.lane(lane),
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.settings.ack_wait,
            // The server's default limit of 1,000 would block a lane whose chunks are mostly leased.
            max_ack_pending: -1,
            inactive_threshold: FORGOTTEN_AFTER,
            ..pull::Config::default()
        };
        let make = |stream: Stream<()>| {
            let config = config.clone();
            async move { stream.create_consumer(config).await }
        };
        let made = self.with(make).await?;
        self.consumers().insert(lane, made.clone());
        Ok(made)
    }

    /// Drops a lane's consumer from the cache, so that it is looked up again.
    pub(super) fn forget(&self, lane: Lane) {
        self.consumers().remove(&lane);
    }

    /// Replies to tickets and waits until the server has received the replies; a ticket unknown to the server is no failure.
    pub(super) async fn say(&self, replies: Vec<Subject>, word: &'static str) {
        let said = replies.into_iter().map(|reply| self.client.request(reply, word.into()));
        join_all(said).await;
    }

    /// Replies to tickets that they are worked on, without waiting.
    pub(super) async fn prolong(&self, replies: Vec<Subject>) {
        for reply in replies {
            let _ = self.client.publish(reply, WORKED_ON.into()).await;
        }
    }

    fn consumers(&self) -> MutexGuard<'_, HashMap<Lane, PullConsumer>> {
        self.consumers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TicketStream {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Publication {
    fn again(&self) -> Self {
        Self {
            lane: self.lane,
            subject: self.subject.clone(),
            id: self.id.clone(),
            due_at_ms: self.due_at_ms,
        }
    }
}

impl StreamSignals {
    /// Wakes all tasks that wait for a change, or the next one to wait if there is none.
    pub(super) fn wake(&self) {
        self.changes.notify_waiters();
        self.changes.notify_one();
    }
}

/// Returns why a ticket was not kept; that the server has it is none.
fn refusal(error: &PublishError) -> Option<String> {
    let mut words = error.to_string();
    if let Some(source) = std::error::Error::source(error) {
        words = format!("{words}: {source}");
    }
    (!words.contains(IS_THERE)).then_some(words)
}

/// Reads a due time.
pub(super) fn due_at(payload: &[u8]) -> Option<Timestamp> {
    std::str::from_utf8(payload).ok()?.parse().ok().map(Timestamp::from_millis)
}

fn lanes(tickets: &[Ticket]) -> Vec<Lane> {
    let mut lanes: Vec<_> = tickets.iter().map(|ticket| ticket.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    lanes
}
