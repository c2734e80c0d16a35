//! The queue: tickets in a file of their own, which can be thrown away and filled again from the store.

mod mend;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;
use stentor_core::chunk::{Lane, Ticket, TrafficClass};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId};
use stentor_core::ports::queue::{LaneDepth, Queue, QueueError, QueueLease};
use stentor_core::ports::store::StoreError;
use stentor_core::time::Timestamp;
use tempfile::TempDir;
use tokio::sync::Notify;

use super::file::{self, FileLock};
use super::migrations;
use super::settings::SqliteSettings;
use super::temporary;
use super::writer::{CommitPriority, WriterThread};
use crate::sql::{
    Done, Row, all, code, damaged, int, limit, maybe_time, number, one, params, readable, run, time,
};

/// Tickets that one transaction publishes: a campaign that is resumed may have any number.
const AT_ONCE_MAX_COUNT: usize = 1_000;
/// Longest wait before `changed` returns for no reason, in case a wake-up went to another waiter.
const CHANGED_MAX_MS: u64 = 1_000;

/// A queue in one SQLite file.
pub struct SqliteQueue {
    writer: WriterThread,
    /// Counts while others write.
    reader: Arc<Mutex<Connection>>,
    changes: Notify,
    /// The time given by the last call, and the next instant at which a ticket becomes ready by itself.
    horizon: Mutex<Horizon>,
    _lock: FileLock,
    _temporary: Option<TempDir>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Horizon {
    now: Timestamp,
    next: Option<Timestamp>,
}

impl SqliteQueue {
    /// Opens the file, or creates it. An unreadable file is moved aside, and the queue starts empty: the caller publishes the store's
    /// queued chunks again.
    pub fn open(path: impl AsRef<Path>, settings: SqliteSettings) -> Result<Self, StoreError> {
        Self::open_over(path.as_ref(), &settings, None)
    }

    /// Opens an empty queue in a temporary directory, which is removed with it. No commit waits for the disk.
    pub fn temporary() -> Result<Self, StoreError> {
        let folder = temporary::folder()?;
        let path = folder.path().join("queue.db");
        Self::open_over(&path, &SqliteSettings::temporary(), Some(folder))
    }

    fn open_over(
        path: &Path,
        settings: &SqliteSettings,
        temporary: Option<TempDir>,
    ) -> Result<Self, StoreError> {
        file::ensure(path)?;
        let lock = FileLock::take(path)?;
        let connection = match prepare(path, settings).map_err(StoreError::from) {
            Err(StoreError::Damaged(why)) => {
                tracing::warn!(%why, "the queue's file is damaged: it is moved aside and filled again from the store");
                file::quarantine(path)?;
                file::ensure(path)?;
                prepare(path, settings)?
            }
            other => other?,
        };
        let reader = Arc::new(Mutex::new(file::open_reader(path, settings)?));
        let writer = WriterThread::start("stentor-queue", connection, settings, |_| ())?;
        let (changes, horizon) = (Notify::new(), Mutex::default());
        Ok(Self { writer, reader, changes, horizon, _lock: lock, _temporary: temporary })
    }

    async fn work<T, F>(&self, work: F) -> Result<T, QueueError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Done<T> + Send + 'static,
    {
        let work = move |connection: &Connection| mend::around(connection, work);
        self.writer
            .run(CommitPriority::Usual, work)
            .await
            .map_err(|error| QueueError::Unavailable(error.to_string()))
    }

    /// Wakes all waiting tasks, or the next one to wait if there is none.
    fn wake(&self) {
        self.changes.notify_waiters();
        // For a task between two waits: `notify_waiters` stores no permit.
        self.changes.notify_one();
    }
}

#[async_trait]
impl Queue for SqliteQueue {
    async fn publish(&self, tickets: &[Ticket]) -> Result<(), QueueError> {
        let next = tickets.iter().map(|ticket| ticket.due_at).min();
        for some in tickets.chunks(AT_ONCE_MAX_COUNT) {
            let some = some.to_vec();
            self.work(move |connection| some.iter().try_for_each(|ticket| put(connection, *ticket))).await?;
        }
        // Last, because a woken task leases at once.
        self.expect(next);
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
        let work = move |connection: &Connection| {
            let leases = take(connection, lane, max, until, now)?;
            Ok((leases, next_ready(connection, now)?))
        };
        let (leases, next) = self.work(work).await?;
        // A concurrent publication may be overwritten here; its wake-up is not, and `changed` checks again after a second.
        *lock(&self.horizon) = Horizon { now, next };
        Ok(leases)
    }

    async fn extend(
        &self,
        leases: &[QueueLease],
        lease_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<bool>, QueueError> {
        let held = names(leases);
        let until = now.plus(lease_for);
        self.work(move |connection| {
            let sql =
                "UPDATE tickets SET lease_until = ?3 WHERE chunk = ?1 AND lease = ?2 AND lease_until > ?4";
            let (until, now) = (until.as_millis(), now.as_millis());
            held.iter()
                .map(|(chunk, lease)| Ok(run(connection, sql, [*chunk, *lease, until, now])? > 0))
                .collect()
        })
        .await
    }

    async fn ack(&self, leases: Vec<QueueLease>) -> Result<(), QueueError> {
        let held = names(&leases);
        self.work(move |connection| {
            let sql = "DELETE FROM tickets WHERE chunk = ?1 AND lease = ?2";
            held.iter().try_for_each(|(chunk, lease)| run(connection, sql, [chunk, lease]).map(drop))
        })
        .await
    }

    async fn nack(&self, leases: Vec<QueueLease>, due_at: Timestamp) -> Result<(), QueueError> {
        let held = names(&leases);
        self.work(move |connection| {
            let sql = "UPDATE tickets SET lease = NULL, lease_until = NULL, due_at = ?3 WHERE chunk = ?1 AND lease = ?2";
            let due_at = due_at.as_millis();
            held.iter().try_for_each(|(chunk, lease)| run(connection, sql, [*chunk, *lease, due_at]).map(drop))
        })
        .await?;
        self.expect(Some(due_at));
        Ok(())
    }

    async fn withdraw(&self, chunks: &[ChunkId]) -> Result<(), QueueError> {
        let chunks = chunks.to_vec();
        self.work(move |connection| {
            let sql = "DELETE FROM tickets WHERE chunk = ?1";
            chunks.iter().try_for_each(|chunk| run(connection, sql, [int(chunk.raw())]).map(drop))
        })
        .await
    }

    async fn depths(&self, now: Timestamp) -> Result<Vec<LaneDepth>, QueueError> {
        let reader = self.reader.clone();
        let counting = tokio::task::spawn_blocking(move || {
            let connection = reader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            depths(&connection, now).map_err(StoreError::from)
        });
        let counted = counting.await.map_err(|error| QueueError::Unavailable(error.to_string()))?;
        let (depths, broken) = counted.map_err(|error| QueueError::Unavailable(error.to_string()))?;
        // Counted over a connection that only reads: the thread that writes takes the broken ones out.
        if !broken.is_empty() {
            self.work(mend::mend).await?;
        }
        Ok(depths)
    }

    async fn keeps(&self) -> Result<(), QueueError> {
        let proof = self.writer.keeps(|connection| {
            mend::around(connection, |connection| {
                run(connection, "UPDATE leases SET last = last + 1", ()).map(drop)
            })
        });
        proof.await.map_err(|error| QueueError::Unavailable(error.to_string()))
    }

    async fn broken(&self) -> String {
        self.writer.ended().await
    }

    async fn clear(&self) -> Result<(), QueueError> {
        self.work(|connection| run(connection, "DELETE FROM tickets", ()).map(drop)).await
    }

    async fn changed(&self) {
        let Horizon { now, next } = *lock(&self.horizon);
        let wait = next.map_or(Duration::MAX, |next| next.since(now));
        let wait = wait.min(Duration::from_millis(CHANGED_MAX_MS));
        // Running out of time is a reason to look, like any other.
        let _ = tokio::time::timeout(wait, self.changes.notified()).await;
    }
}

impl SqliteQueue {
    /// Records the instant at which a ticket becomes ready, and wakes waiting tasks.
    fn expect(&self, at: Option<Timestamp>) {
        let mut horizon = lock(&self.horizon);
        horizon.next = horizon.next.into_iter().chain(at).min();
        // The woken tasks lock it.
        drop(horizon);
        self.wake();
    }
}

impl std::fmt::Debug for SqliteQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SqliteQueue")
    }
}

fn lock(horizon: &Mutex<Horizon>) -> std::sync::MutexGuard<'_, Horizon> {
    horizon.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn prepare(path: &Path, settings: &SqliteSettings) -> Done<Connection> {
    let connection = file::open_writer(path, settings)?;
    // Before the migrations, which would write into a damaged file.
    let verdict: String = connection.pragma_query_value(None, "quick_check", |row| row.get(0))?;
    if verdict != "ok" {
        return Err(damaged(&verdict));
    }
    migrations::run(&connection, migrations::QUEUE)?;
    mend::mend(&connection)?;
    Ok(connection)
}

fn names(leases: &[QueueLease]) -> Vec<(i64, i64)> {
    leases.iter().map(|lease| (int(lease.ticket.chunk.raw()), int(lease.token))).collect()
}

fn find_lane(connection: &Connection, lane: Lane) -> Done<Option<i64>> {
    let sql = "SELECT no FROM lanes WHERE app = ?1 AND provider = ?2 AND class = ?3";
    let key = params![int(lane.app.raw()), lane.provider.code(), lane.class.code()];
    one(connection, sql, key, |row| row.get(0))
}

fn ensure_lane(connection: &Connection, lane: Lane) -> Done<i64> {
    if let Some(no) = find_lane(connection, lane)? {
        return Ok(no);
    }
    let sql = "INSERT INTO lanes (app, provider, class) VALUES (?1, ?2, ?3)";
    run(connection, sql, params![int(lane.app.raw()), lane.provider.code(), lane.class.code()])?;
    Ok(connection.last_insert_rowid())
}

fn put(connection: &Connection, ticket: Ticket) -> Done<()> {
    let lane = ensure_lane(connection, ticket.lane)?;
    run(connection, PUT, [int(ticket.chunk.raw()), lane, ticket.due_at.as_millis(), mend::INSTANT_MAX_MS])
        .map(drop)
}

/// Inserts a ticket. An existing one stays as it is, unless it is in another lane or its due time is out of range. Texts and blobs compare
/// larger than each number here.
const PUT: &str = "INSERT INTO tickets (chunk, lane, due_at) VALUES (?1, ?2, ?3)
    ON CONFLICT (chunk) DO UPDATE SET lane = excluded.lane, due_at = excluded.due_at, lease = NULL, lease_until = NULL
    WHERE lane IS NOT excluded.lane OR due_at > ?4 OR lease_until > ?4 OR (lease IS NULL) <> (lease_until IS NULL)";

const FREE: &str = "SELECT chunk, due_at FROM (
        SELECT * FROM (SELECT chunk, due_at FROM tickets WHERE lane = ?1 AND lease IS NULL AND due_at <= ?2
            ORDER BY due_at, chunk LIMIT ?3)
        UNION ALL
        SELECT chunk, due_at FROM tickets WHERE lane = ?1 AND lease IS NOT NULL AND lease_until <= ?2
    ) ORDER BY due_at, chunk LIMIT ?3";

const NEXT_READY: &str = "SELECT min(at) FROM (
    SELECT (SELECT min(due_at) FROM tickets WHERE lane = l.no AND lease IS NULL AND due_at > ?1) AS at FROM lanes l
    UNION ALL
    SELECT (SELECT min(lease_until) FROM tickets WHERE lane = l.no AND lease IS NOT NULL AND lease_until > ?1) FROM lanes l)";

fn take(
    connection: &Connection,
    lane: Lane,
    max: usize,
    until: Timestamp,
    now: Timestamp,
) -> Done<Vec<QueueLease>> {
    let Some(no) = find_lane(connection, lane)? else { return Ok(Vec::new()) };
    let tickets = all(connection, FREE, [no, now.as_millis(), limit(max)], |row| {
        Ok(Ticket { chunk: ChunkId::from_raw(number(row, 0)?), lane, due_at: time(row, 1)? })
    })?;
    if tickets.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "UPDATE leases SET last = last + ?1 RETURNING last - ?1";
    // Numbers continue over restarts, so that a former lease is never taken for a present one.
    let before = one(connection, sql, [limit(tickets.len())], |row| number(row, 0))?;
    let before = before.ok_or_else(|| damaged("the counter of leases is missing"))?;
    let leases: Vec<_> =
        (before + 1..).zip(tickets).map(|(token, ticket)| QueueLease { ticket, token }).collect();
    let sql = "UPDATE tickets SET lease = ?2, lease_until = ?3 WHERE chunk = ?1";
    let until = until.as_millis();
    for lease in &leases {
        run(connection, sql, [int(lease.ticket.chunk.raw()), int(lease.token), until])?;
    }
    Ok(leases)
}

/// Returns the instant after `now` at which a ticket falls due or a lease runs out.
fn next_ready(connection: &Connection, now: Timestamp) -> Done<Option<Timestamp>> {
    Ok(one(connection, NEXT_READY, [now.as_millis()], |row| maybe_time(row, 0))?.flatten())
}

/// Counts by lane, in the indices alone, and only lanes that hold anything: a full queue has millions of rows, and an old file
/// many lanes.
const DEPTHS: &str = "WITH RECURSIVE
    waiting (no) AS (SELECT min(lane) FROM tickets WHERE lease IS NULL UNION ALL
        SELECT (SELECT min(lane) FROM tickets WHERE lease IS NULL AND lane > no) FROM waiting WHERE no IS NOT NULL),
    leased (no) AS (SELECT min(lane) FROM tickets WHERE lease IS NOT NULL UNION ALL
        SELECT (SELECT min(lane) FROM tickets WHERE lease IS NOT NULL AND lane > no) FROM leased WHERE no IS NOT NULL)
    SELECT l.no, l.provider, l.app, l.class,
        (SELECT count(*) FROM tickets WHERE lane = l.no AND lease IS NULL AND due_at <= ?1),
        (SELECT count(*) FROM tickets WHERE lane = l.no AND lease IS NULL AND due_at > ?1),
        (SELECT count(*) FROM tickets WHERE lane = l.no AND lease IS NOT NULL AND lease_until > ?1),
        (SELECT min(due_at) FROM tickets WHERE lane = l.no AND lease IS NULL AND due_at <= ?1),
        (SELECT min(due_at) FROM tickets WHERE lane = l.no AND lease IS NULL AND due_at > ?1),
        (SELECT count(*) FROM tickets WHERE lane = l.no AND lease IS NOT NULL AND lease_until <= ?1 AND due_at <= ?1),
        (SELECT count(*) FROM tickets WHERE lane = l.no AND lease IS NOT NULL AND lease_until <= ?1 AND due_at > ?1),
        (SELECT min(due_at) FROM tickets WHERE lane = l.no AND lease IS NOT NULL AND lease_until <= ?1 AND due_at <= ?1),
        (SELECT min(due_at) FROM tickets WHERE lane = l.no AND lease IS NOT NULL AND lease_until <= ?1 AND due_at > ?1)
    FROM lanes l WHERE l.no IN (SELECT no FROM waiting UNION SELECT no FROM leased)
    ORDER BY l.provider, l.app, l.class";

/// Counts by lane, and names the lanes that cannot be read.
fn depths(connection: &Connection, now: Timestamp) -> Done<(Vec<LaneDepth>, Vec<i64>)> {
    readable(connection, "lanes", (DEPTHS, [now.as_millis()]), usize::MAX, depth)
}

/// Reads a row of [`DEPTHS`]; a lease that has run out counts as none.
fn depth(row: &Row<'_>) -> Done<LaneDepth> {
    let app = AppId::from_raw(number(row, 2)?);
    let (provider, class) = (code(row, 1, ProviderKind::from_code)?, code(row, 3, TrafficClass::from_code)?);
    Ok(LaneDepth {
        lane: Lane { provider, app, class },
        ready: number(row, 4)? + number(row, 9)?,
        delayed: number(row, 5)? + number(row, 10)?,
        leased: number(row, 6)?,
        oldest_due: earlier(maybe_time(row, 7)?, maybe_time(row, 11)?),
        next_due: earlier(maybe_time(row, 8)?, maybe_time(row, 12)?),
    })
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus::RePrepare;

    use super::*;

    #[test]
    fn depths_are_counted_in_indices_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("queue.db");
        file::ensure(&path).expect("made");
        let connection = prepare(&path, &SqliteSettings::queue()).expect("opened");
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {DEPTHS}")).expect("a plan");
        let steps = plan.query_map([0], |row| row.get::<_, String>(3)).expect("asked");
        let steps: Vec<_> = steps.map(|step| step.expect("a step")).collect();
        assert!(steps.iter().all(|step| !step.contains("SCAN tickets")), "{steps:#?}");
    }

    #[test]
    fn statements_are_prepared_once_however_often_chunks_are_leased() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("queue.db");
        file::ensure(&path).expect("made");
        let connection = prepare(&path, &SqliteSettings::queue()).expect("opened");
        let lane = Lane { provider: ProviderKind::Fcm, app: AppId::from_raw(1), class: TrafficClass::Bulk };
        for number in 1..4 {
            let now = Timestamp::from_millis(1_000 * i64::try_from(number).expect("small"));
            put(&connection, Ticket { chunk: ChunkId::from_raw(number), lane, due_at: now }).expect("put");
            assert_eq!(
                take(&connection, lane, 2, now.plus(Duration::from_secs(9)), now).expect("taken").len(),
                1
            );
            next_ready(&connection, now).expect("told");
        }
        for sql in [FREE, NEXT_READY] {
            let statement = connection.prepare_cached(sql).expect("kept");
            assert_eq!(statement.get_status(RePrepare), 0, "{sql}");
        }
    }
}
