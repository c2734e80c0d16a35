//! The queue: tickets in an unlogged table beside the store's tables. A crash of the server may empty it, and it is filled again
//! from the store.
//!
//! Each call is one statement, so that it needs no transaction of several round trips. A lease skips tickets that another session is
//! leasing at this moment. Published tickets are announced to all listening processes.

mod statements;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use stentor_core::chunk::{Lane, Ticket};
use stentor_core::id::ChunkId;
use stentor_core::ports::queue::{LaneDepth, Queue, QueueError, QueueLease};
use stentor_core::ports::store::StoreError;
use stentor_core::time::Timestamp;
use tokio::sync::Notify;

use super::access::DatabaseAccess;
use super::address::PostgresAddress;
use super::connection::ConnectionStanding;
use super::engine::Connection;
use super::listener::ChannelListener;
use super::readers::ReadThreads;
use super::settings::PostgresSettings;
use super::start::insist_on_start;
use super::transactor::Transactor;
use crate::commit_queue::CommitPriority;
use crate::sql::{Done, SqlError, int};

/// The number of connections for calls of the queue; one more listens.
const CONNECTIONS_MAX_COUNT: usize = 3;
/// Tickets that one statement publishes: a campaign that is resumed may have any number.
const AT_ONCE_MAX_COUNT: usize = 1_000;
/// The number of attempts for a statement that collides with another one.
const TRIES_MAX_COUNT: usize = 5;

/// A queue in one PostgreSQL database, which any number of processes may share.
pub struct PostgresQueue {
    threads: ReadThreads,
    listener: Arc<ChannelListener>,
    /// The longest wait of `changed`, because no notification is sent when a ticket falls due.
    look_interval: Duration,
    /// The largest lease number received.
    last_token: AtomicU64,
    /// True if tickets could not be published.
    has_missed: AtomicBool,
    emptied: Notify,
}

impl PostgresQueue {
    /// Opens the queue of a database, and creates its table if needed.
    pub fn open(address: &PostgresAddress, settings: &PostgresSettings) -> Result<Self, StoreError> {
        let access = DatabaseAccess::new(address, settings);
        let transactor = || Transactor::new(access.clone());
        let (mut first, patience) = (transactor(), Duration::from_millis(settings.start_patience_ms.into()));
        let prepare = move || {
            insist_on_start(patience, || statements::prepare(first.connect()?)).map_err(StoreError::from)
        };
        super::store::apart(prepare)?;
        let connections = (0..CONNECTIONS_MAX_COUNT).map(|_| transactor()).collect();
        let threads = ReadThreads::start("stentor-queue", connections, settings.waiting_max_jobs)?;
        Ok(Self {
            threads,
            // Accepts every notification, of other processes and of this one.
            listener: ChannelListener::start(transactor(), statements::CHANNEL, |_| true)?,
            look_interval: Duration::from_millis(settings.look_interval_ms.into()),
            last_token: AtomicU64::new(0),
            has_missed: AtomicBool::new(false),
            emptied: Notify::new(),
        })
    }

    /// Detects lost tickets: after a crash the server has an empty table and counts from the beginning.
    fn notice(&self, last: u64) {
        let began_anew = self.last_token.load(Ordering::Relaxed) > last;
        if began_anew {
            self.last_token.store(last, Ordering::Relaxed);
        }
        // It triggers only a republishing, which is safe at any time, so no memory ordering is needed.
        if self.has_missed.swap(false, Ordering::Relaxed) || began_anew {
            self.emptied.notify_one();
        }
    }

    async fn work<T, F>(&self, work: F) -> Result<T, QueueError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Done<T> + Send + 'static,
    {
        let done = self
            .threads
            .run((CommitPriority::Usual, false), move |connection| insist(connection, &work))
            .await;
        done.map_err(|error| QueueError::Unavailable(error.to_string()))
    }
}

/// Repeats work that collided with another transaction. Creates the queue's table again if it was dropped or spoilt by a promotion.
fn insist<T>(connection: &Connection, work: &impl Fn(&Connection) -> Done<T>) -> Done<T> {
    for _ in 1..TRIES_MAX_COUNT {
        connection.begin_watch();
        match work(connection) {
            Err(SqlError::Postgres(error)) if statements::is_missing(&error) => {
                statements::prepare(connection)?;
            }
            Err(SqlError::Postgres(error)) if statements::is_spoilt(&error) => {
                statements::make_anew(connection)?;
            }
            Err(_) if connection.standing() == ConnectionStanding::Collided => {}
            done => return done,
        }
    }
    work(connection)
}

#[async_trait]
impl Queue for PostgresQueue {
    async fn publish(&self, tickets: &[Ticket]) -> Result<(), QueueError> {
        for some in tickets.chunks(AT_ONCE_MAX_COUNT) {
            let mut some = some.to_vec();
            // In the same order as all others, to avoid deadlocks between publishers of the same tickets.
            some.sort_unstable_by_key(|ticket| ticket.chunk);
            let put = self.work(move |connection| statements::put(connection, &some)).await;
            // The next successful call of `depths` reports it: until then publishing again would fail as well.
            put.inspect_err(|_| self.has_missed.store(true, Ordering::Relaxed))?;
        }
        if !tickets.is_empty() {
            self.listener.wake();
        }
        Ok(())
    }

    async fn lease(
        &self,
        lane: Lane,
        max: usize,
        lease_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<QueueLease>, QueueError> {
        let until = now.plus(lease_for);
        let leases = self.work(move |connection| statements::take(connection, lane, max, until, now)).await?;
        let last = leases.iter().map(|lease| lease.token).max();
        // Replies come in any order: a smaller number must not hide that the server has restarted its sequence.
        self.last_token.fetch_max(last.unwrap_or_default(), Ordering::Relaxed);
        Ok(leases)
    }

    async fn extend(
        &self,
        leases: &[QueueLease],
        lease_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<bool>, QueueError> {
        let (lease_names, until) = (names(leases), now.plus(lease_for));
        let names = lease_names.clone();
        let held = self.work(move |connection| statements::extend(connection, &names, until, now)).await?;
        let held: HashSet<_> = held.into_iter().collect();
        Ok(lease_names.iter().map(|lease| held.contains(lease)).collect())
    }

    async fn ack(&self, leases: Vec<QueueLease>) -> Result<(), QueueError> {
        let names = names(&leases);
        self.work(move |connection| statements::remove_leased(connection, &names)).await
    }

    async fn nack(&self, leases: Vec<QueueLease>, due_at: Timestamp) -> Result<(), QueueError> {
        let names = names(&leases);
        self.work(move |connection| statements::give_back(connection, &names, due_at)).await?;
        self.listener.wake();
        Ok(())
    }

    async fn withdraw(&self, chunks: &[ChunkId]) -> Result<(), QueueError> {
        let mut chunks: Vec<_> = chunks.iter().map(|chunk| int(chunk.raw())).collect();
        // In the same order as all others, as in `publish`.
        chunks.sort_unstable();
        self.work(move |connection| statements::remove(connection, &chunks)).await
    }

    async fn depths(&self, now: Timestamp) -> Result<Vec<LaneDepth>, QueueError> {
        let look = move |connection: &Connection| {
            Ok((statements::depths(connection, now)?, statements::last_token(connection)?))
        };
        let (depths, last) = self.work(look).await?;
        self.notice(last);
        Ok(depths)
    }

    async fn keeps(&self) -> Result<(), QueueError> {
        self.work(statements::try_to_write).await
    }

    /// Never resolves: its threads survive panics and reopen lost connections.
    async fn broken(&self) -> String {
        std::future::pending().await
    }

    /// Detected by lease numbers that begin again, and by the server's return after tickets could not be published.
    async fn emptied(&self) {
        self.emptied.notified().await;
    }

    async fn clear(&self) -> Result<(), QueueError> {
        self.work(statements::clear).await
    }

    async fn changed(&self) {
        // Running out of time is a reason to look, like any other.
        let _ = tokio::time::timeout(self.look_interval, self.listener.woken()).await;
    }
}

impl std::fmt::Debug for PostgresQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PostgresQueue")
    }
}

/// Lists the identities of leases: the chunk and the engine's own number.
fn names(leases: &[QueueLease]) -> Vec<(i64, i64)> {
    leases.iter().map(|lease| (int(lease.ticket.chunk.raw()), int(lease.token))).collect()
}
