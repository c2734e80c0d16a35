//! The single writer thread: waiting jobs are committed together, and answered after the commit.
//!
//! A commit costs a flush of the disk, however much it contains. Therefore many small jobs share one (group commit). Each job is a
//! savepoint of its own, or makes all its checks first: a job that fails does not affect the others. Jobs for a waiting caller or a single
//! device go first, and their commit takes no others; but every other commit begins with a job that moves audiences.

mod health;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
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

/// The way in which a failed job is rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Undo {
    /// By a savepoint before it.
    Savepoint,
    /// Not needed: the job makes all its checks before it writes, and fails in the middle only if the engine fails.
    Nothing,
}

/// A waiting job with its answer.
pub(super) trait Job: Send {
    /// Returns the way in which the job is rolled back when it fails.
    fn undo(&self) -> Undo;
    /// Executes the work inside the open transaction; returns true if it is to be committed.
    fn work(&mut self, connection: &Connection) -> bool;
    /// Sends the answer after the commit, or after its failure.
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

/// The writer thread; dropping it waits until all its jobs are committed.
pub(super) struct WriterThread {
    queue: Arc<CommitQueue<Box<dyn Job>>>,
    health: Arc<Health>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Commits on the caller's thread instead.
    inline: Option<Mutex<GroupCommitter>>,
}

/// A queued job, which can be awaited.
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
            settled: Box::new(settled),
        };
        if settings.writes_inline {
            return Ok(Self { queue, health, thread: Mutex::default(), inline: Some(Mutex::new(committer)) });
        }
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || committer.watched());
        let thread = thread.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(Self { queue, health, thread: Mutex::new(Some(thread)), inline: None })
    }

    /// Returns an error if writes cannot be committed now. If no recent commit shows it, `probe` is written.
    pub(super) async fn keeps(&self, probe: fn(&Connection) -> Done<()>) -> Result<(), StoreError> {
        match self.health.standing(Instant::now()) {
            WriteHealth::Keeps => Ok(()),
            WriteHealth::Fails(error) => Err(error),
            WriteHealth::Unknown => self.run(CommitPriority::First, probe).await,
        }
    }

    /// Waits until the thread has died of a panic; returns the panic's message.
    pub(super) async fn ended(&self) -> String {
        self.health.ended().await
    }

    /// Queues a job, waiting for a place. Its result is on disk once it is answered.
    pub(super) async fn submit<T, F>(&self, priority: CommitPriority, work: F) -> Pending<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Done<T> + Send + 'static,
    {
        self.hand_over(priority, work, Undo::Savepoint).await
    }

    /// Queues a job that makes all its checks before it writes. It needs no savepoint, because copies of pages would cost more than a small
    /// job's own work. If the engine fails in the middle of it, all jobs of its commit fail.
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
        if self.queue.push(priority, Box::new(call)).await.is_err() {
            return Pending(Err(closed()));
        }
        if let Some(committer) = &self.inline {
            committer.lock().unwrap_or_else(PoisonError::into_inner).commit_waiting();
        }
        Pending(Ok(answer))
    }

    /// Queues a job that callers wait for, of a kind that is rare; it is dropped if the thread has ended.
    pub(super) fn queue(&self, job: Box<dyn Job>) {
        drop(self.queue.push_now(CommitPriority::First, job));
        if let Some(committer) = &self.inline {
            committer.lock().unwrap_or_else(PoisonError::into_inner).commit_waiting();
        }
    }

    /// Executes a job and waits for its commit.
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
        // Closed before the join: the thread ends once the queue is empty.
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
    /// The priority that begins the next commit if jobs of both priorities wait.
    next: CommitPriority,
    /// True if a successful job of this commit has written anything.
    wrote: bool,
    max_jobs: usize,
    max_span: Duration,
    settled: Box<dyn FnMut(&Connection) + Send>,
}

impl Drop for GroupCommitter {
    fn drop(&mut self) {
        // Callers must not wait for ever for a thread that is gone.
        self.queue.abandon();
    }
}

impl GroupCommitter {
    /// Runs to the end; a panic is recorded before the waiting jobs are dropped.
    fn watched(mut self) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.run())) {
            self.health.end(text_of(&*panic));
        }
    }

    fn run(&mut self) {
        while let Some((priority, first)) = self.queue.take(self.next) {
            self.commit(priority, first);
        }
    }

    /// Commits the jobs that wait, and returns.
    fn commit_waiting(&mut self) {
        for priority in [CommitPriority::First, CommitPriority::Usual] {
            while let Some(first) = self.queue.try_take(priority) {
                self.commit(priority, first);
            }
        }
    }

    /// Commits a job with those that join it, and answers them.
    fn commit(&mut self, priority: CommitPriority, first: Box<dyn Job>) {
        self.next =
            if priority == CommitPriority::First { CommitPriority::Usual } else { CommitPriority::First };
        let mut group = Vec::new();
        self.wrote = false;
        let committed = self.group(priority, first, &mut group);
        // Before the answers: a caller that receives a failure finds it in the health.
        self.health.note(&committed, self.wrote, Instant::now());
        // A commit that failed may leave the transaction open, and the next BEGIN would fail.
        if !self.connection.is_autocommit() {
            let _ = self.execute("ROLLBACK");
        }
        // Before the answers: a caller reads its own writes, so caches must not be behind them.
        (self.settled)(&self.connection);
        for job in group {
            job.answer(committed.clone());
        }
    }

    /// Executes the waiting jobs and commits them.
    fn group(
        &mut self,
        priority: CommitPriority,
        first: Box<dyn Job>,
        group: &mut Vec<Box<dyn Job>>,
    ) -> Result<(), StoreError> {
        let begun = Instant::now();
        let mut in_a_hurry = priority == CommitPriority::First;
        group.push(first);
        // Takes the write lock at once: a transaction that upgrades later can fail half way if another process writes.
        self.execute("BEGIN IMMEDIATE")?;
        let mut kept_count = 0;
        let mut at = 0;
        loop {
            kept_count += u32::from(self.work(group[at].as_mut(), kept_count > 0)?);
            at += 1;
            if at == self.max_jobs || begun.elapsed() >= self.max_span {
                break;
            }
            // Jobs with a waiting caller come first. If the group contains one, no audience job makes its commit longer.
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

    /// Executes one job. The first successful one needs no savepoint: before it there is nothing to save.
    fn work(&mut self, job: &mut dyn Job, others: bool) -> Result<bool, StoreError> {
        if others && job.undo() == Undo::Nothing {
            return self.work_tidily(job);
        }
        if others {
            self.execute("SAVEPOINT job")?;
        }
        // A successful job without changes does not show that the disk accepts writes.
        let before = self.connection.total_changes();
        let keep = job.work(&self.connection);
        self.wrote |= keep && self.connection.total_changes() != before;
        if self.connection.is_autocommit() {
            // The engine rolled back the whole transaction (a full or failing disk): the jobs before are lost too.
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
        // Only a rollback of the whole group undoes writes made before the failure.
        let is_torn = !keep && changed;
        self.wrote |= keep && changed;
        if is_torn || self.connection.is_autocommit() {
            return Err(StoreError::Unavailable("the engine failed in the middle of a transaction".into()));
        }
        Ok(keep)
    }

    /// Executes one statement, which is prepared once: a job needs up to three of them beside its own.
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
