//! The one thread that writes: whatever waits is committed together, and answered after that.
//!
//! A commit costs a flush of the disk whatever it holds, so many small jobs share one. Each job is a savepoint of its
//! own, or makes all its checks first: one that fails takes nothing of the others with it. Jobs that a caller or a single device waits for go first, and
//! their commit waits for no others; but every other commit begins with one of those that move audiences.

mod health;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use stentor_core::ports::store::StoreError;
use tokio::sync::oneshot;

use super::settings::SqliteSettings;
pub(super) use crate::commit_queue::CommitPriority;
use crate::commit_queue::CommitQueue;
use crate::sql::{Done, SqlError};
use health::{Health, WriteHealth, text_of};

/// How what a job wrote is taken back when it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Undo {
    /// A savepoint is begun before it.
    Savepoint,
    /// There is nothing to take back: it makes all its checks before it writes, and fails in the middle only with the engine.
    Nothing,
}

/// A job that waits, and what it will answer.
trait Job: Send {
    /// Returns how what it wrote is taken back when it fails.
    fn undo(&self) -> Undo;
    /// Does the work inside the open transaction; returns whether it is to be kept.
    fn work(&mut self, connection: &Connection) -> bool;
    /// Answers after the commit, or after it failed.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

struct WriteJob<F, T> {
    work: Option<F>,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
    undo: Undo,
}

impl<F, T> Job for WriteJob<F, T>
where
    F: FnOnce(&Connection) -> Done<T> + Send,
    T: Send,
{
    fn undo(&self) -> Undo {
        self.undo
    }

    fn work(&mut self, connection: &Connection) -> bool {
        let Some(work) = self.work.take() else { return false };
        let result = catch_unwind(AssertUnwindSafe(|| work(connection)));
        let result =
            result.unwrap_or_else(|_| Err(StoreError::Damaged("a job of the store panicked".into()).into()));
        self.result.insert(result.map_err(StoreError::from)).is_ok()
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let result = match (self.result, committed) {
            (Some(Ok(_)), Err(error)) => Err(error),
            (Some(result), _) => result,
            (None, _) => Err(StoreError::Unavailable("the job was never begun".into())),
        };
        // A caller that went away does not need an answer.
        let _ = self.reply.send(result);
    }
}

/// The way to the thread that writes; dropping it waits until all that was handed over is committed.
pub(super) struct WriterThread {
    queue: Arc<CommitQueue<Box<dyn Job>>>,
    health: Arc<Health>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A job handed over: waits for its answer.
pub(super) struct Pending<T>(Result<oneshot::Receiver<Result<T, StoreError>>, StoreError>);

impl<T> Pending<T> {
    /// Waits until the job is committed or has failed.
    pub(super) async fn await_commit(self) -> Result<T, StoreError> {
        self.0?.await.unwrap_or_else(|_| Err(closed()))
    }
}

impl WriterThread {
    /// Starts the thread; it calls `settled` with its connection whenever a transaction has ended, before its jobs are
    /// answered.
    pub(super) fn start(
        name: &str,
        connection: Connection,
        settings: &SqliteSettings,
        settled: impl FnMut(&Connection) + Send + 'static,
    ) -> Result<Self, StoreError> {
        let queue = Arc::new(CommitQueue::new(settings.waiting_max_jobs));
        let health = Arc::new(Health::default());
        let committer = GroupCommitter {
            connection,
            queue: queue.clone(),
            health: health.clone(),
            next: CommitPriority::First,
            wrote: false,
            max_jobs: settings.group_commit_max_jobs.max(1),
            max_span: Duration::from_millis(settings.group_commit_max_ms.into()),
        };
        let thread =
            std::thread::Builder::new().name(name.to_owned()).spawn(move || committer.watched(settled));
        let thread = thread.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(Self { queue, health, thread: Mutex::new(Some(thread)) })
    }

    /// Returns whether what is written now is kept; where the last commit does not say, `probe` is written for it.
    pub(super) async fn keeps(&self, probe: fn(&Connection) -> Done<()>) -> Result<(), StoreError> {
        match self.health.standing(Instant::now()) {
            WriteHealth::Keeps => Ok(()),
            WriteHealth::Fails(error) => Err(error),
            WriteHealth::Unknown => self.run(CommitPriority::First, probe).await,
        }
    }

    /// Waits until the thread has died of a panic, and gives its words.
    pub(super) async fn ended(&self) -> String {
        self.health.ended().await
    }

    /// Hands a job over, waiting for a place; what it comes to is on disk.
    pub(super) async fn submit<T, F>(&self, priority: CommitPriority, work: F) -> Pending<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Done<T> + Send + 'static,
    {
        self.hand_over(priority, work, Undo::Savepoint).await
    }

    /// Hands over a job that makes all its checks before it writes: it needs no savepoint, whose copies of pages cost more
    /// than a small job's own work. Should the engine fail in the middle of it, all of its commit fail.
    pub(super) async fn submit_checked<T, F>(&self, priority: CommitPriority, work: F) -> Pending<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Done<T> + Send + 'static,
    {
        self.hand_over(priority, work, Undo::Nothing).await
    }

    async fn hand_over<T, F>(&self, priority: CommitPriority, work: F, undo: Undo) -> Pending<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Done<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let call = WriteJob { work: Some(work), result: None, reply, undo };
        match self.queue.push(priority, Box::new(call)).await {
            Ok(()) => Pending(Ok(answer)),
            Err(_) => Pending(Err(closed())),
        }
    }

    /// Does a job and waits for its commit.
    pub(super) async fn run<T, F>(&self, priority: CommitPriority, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Done<T> + Send + 'static,
    {
        self.submit(priority, work).await.await_commit().await
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        // Closed before it is joined: the thread ends once nothing waits any more.
        self.queue.close();
        let thread = self.thread.get_mut().ok().and_then(Option::take);
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}

/// The thread's own half.
struct GroupCommitter {
    connection: Connection,
    queue: Arc<CommitQueue<Box<dyn Job>>>,
    health: Arc<Health>,
    /// Whose turn it is to begin a commit, if jobs of both priorities wait.
    next: CommitPriority,
    /// Whether a job of this commit that is to be kept has written anything.
    wrote: bool,
    max_jobs: usize,
    max_span: Duration,
}

impl Drop for GroupCommitter {
    fn drop(&mut self) {
        // Whoever waits for a thread that is gone must not wait for ever.
        self.queue.abandon();
    }
}

impl GroupCommitter {
    /// Works to the end; a panic is noted before anybody is sent away.
    fn watched(mut self, settled: impl FnMut(&Connection)) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.run(settled))) {
            self.health.end(text_of(&*panic));
        }
    }

    fn run(&mut self, mut settled: impl FnMut(&Connection)) {
        while let Some((priority, first)) = self.queue.take(self.next) {
            self.next =
                if priority == CommitPriority::First { CommitPriority::Usual } else { CommitPriority::First };
            let mut group = Vec::new();
            self.wrote = false;
            let committed = self.group(priority, first, &mut group);
            // Before anybody is answered: who hears of a failure and looks at the health finds it there.
            self.health.note(&committed, self.wrote, Instant::now());
            // A commit that failed may leave the transaction open, and the next BEGIN would fail.
            if !self.connection.is_autocommit() {
                let _ = self.execute("ROLLBACK");
            }
            // Before the answers: whoever has one reads what it wrote, and caches must not be behind it.
            settled(&self.connection);
            for job in group {
                job.answer(committed.clone());
            }
        }
    }

    /// Works on what waits and commits it.
    fn group(
        &mut self,
        priority: CommitPriority,
        first: Box<dyn Job>,
        group: &mut Vec<Box<dyn Job>>,
    ) -> Result<(), StoreError> {
        let begun = Instant::now();
        let mut in_a_hurry = priority == CommitPriority::First;
        group.push(first);
        // The lock at once: a read that becomes a write later can fail half way where another process writes.
        self.execute("BEGIN IMMEDIATE")?;
        let mut kept = 0;
        let mut at = 0;
        loop {
            kept += u32::from(self.work(group[at].as_mut(), kept > 0)?);
            at += 1;
            if at == self.max_jobs || begun.elapsed() >= self.max_span {
                break;
            }
            // Those that somebody waits for, first; with one of them in the group, no audience's job makes its commit
            // longer.
            let hurried = self.queue.try_take(CommitPriority::First);
            in_a_hurry |= hurried.is_some();
            let patient = || if in_a_hurry { None } else { self.queue.try_take(CommitPriority::Usual) };
            match hurried.or_else(patient) {
                Some(next) => group.push(next),
                None => break,
            }
        }
        self.execute("COMMIT")
    }

    /// Works on one job. The first to be kept needs no savepoint: before it there is nothing to save.
    fn work(&mut self, job: &mut dyn Job, others: bool) -> Result<bool, StoreError> {
        if others && job.undo() == Undo::Nothing {
            return self.work_tidily(job);
        }
        if others {
            self.execute("SAVEPOINT job")?;
        }
        // A job that is kept and changed nothing says nothing of whether the disk takes what is written.
        let before = self.connection.total_changes();
        let keep = job.work(&self.connection);
        self.wrote |= keep && self.connection.total_changes() != before;
        if self.connection.is_autocommit() {
            // The engine took the whole transaction back (a full disk, a failing one): the jobs before are lost too.
            if others {
                return Err(StoreError::Unavailable("the engine took the transaction back".into()));
            }
            self.execute("BEGIN IMMEDIATE")?;
            return Ok(false);
        }
        match (keep, others) {
            (true, true) => self.execute("RELEASE job")?,
            (false, true) => {
                self.execute("ROLLBACK TO job")?;
                self.execute("RELEASE job")?;
            }
            (false, false) => {
                self.execute("ROLLBACK")?;
                self.execute("BEGIN IMMEDIATE")?;
            }
            (true, false) => {}
        }
        Ok(keep)
    }

    /// Works on a job that leaves nothing to be taken back.
    fn work_tidily(&mut self, job: &mut dyn Job) -> Result<bool, StoreError> {
        let before = self.connection.total_changes();
        let keep = job.work(&self.connection);
        let changed = self.connection.total_changes() != before;
        // Nothing takes back what it wrote before it failed but the whole group's rollback.
        let is_torn = !keep && changed;
        self.wrote |= keep && changed;
        if is_torn || self.connection.is_autocommit() {
            return Err(StoreError::Unavailable("the engine failed in the middle of a transaction".into()));
        }
        Ok(keep)
    }

    /// Does one statement, prepared once for all times: a job needs up to three of them beside its own.
    fn execute(&self, sql: &str) -> Result<(), StoreError> {
        let done = self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        done.map(drop).map_err(|error| {
            tracing::error!(%error, "the store cannot write");
            SqlError::from(error).into()
        })
    }
}

#[cfg(test)]
mod tests;
