//! Threads that write: whatever waits is committed together, and answered after that.
//!
//! A commit costs a flush of the server's disk and some turns over the network whatever it holds, so many small jobs share
//! one. Each job is a savepoint of its own: one that fails takes nothing of the others with it. Jobs that a caller or a single
//! device waits for go first, and their commit waits for no others; but every other commit begins with one of those that move
//! audiences. What all transactions write, whatever their jobs, comes after the last job.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use stentor_core::ports::store::StoreError;
use tokio::sync::oneshot;

use super::connection::{ConnectionStanding, PostgresConnection as Connection, closed};
use super::settings::PostgresSettings;
use super::store::write_last;
use super::transactor::{LockScope, Transactor};
use crate::commit_queue::{CommitPriority, CommitQueue};
use crate::sql::{Done, Sql as _, damaged, unavailable};

/// A job that waits, and what it will answer. It may be worked on several times.
pub(super) trait CommitJob: Send {
    /// Does the work inside the open transaction; returns whether it is to be kept.
    fn work(&mut self, connection: &Connection) -> bool;
    /// Answers after the commit, or after it failed.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

struct WorkJob<F, T> {
    work: F,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<F, T> CommitJob for WorkJob<F, T>
where
    F: Fn(&Connection) -> Done<T> + Send,
    T: Send,
{
    fn work(&mut self, connection: &Connection) -> bool {
        let result = catch_unwind(AssertUnwindSafe(|| (self.work)(connection)));
        let result = result.unwrap_or_else(|_| Err(damaged("a job of the store panicked")));
        self.result.insert(result.map_err(StoreError::from)).is_ok()
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        // What was not committed is no answer; a refusal stands, whatever became of the commit.
        let result = match (self.result, committed) {
            (Some(Ok(_)) | None, Err(error)) => Err(error),
            (Some(result), _) => result,
            (None, Ok(())) => Err(StoreError::Unavailable("the job was never begun".into())),
        };
        // A caller that went away does not need an answer.
        let _ = self.reply.send(result);
    }
}

/// The way to a thread that writes; dropping it waits until all that was handed over is committed.
pub(super) struct WriteThread {
    queue: Arc<CommitQueue<Box<dyn CommitJob>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl WriteThread {
    /// Starts the thread, whose transactions hold `scope` alone.
    pub(super) fn start(
        name: &str,
        scope: LockScope,
        transactor: Transactor,
        settings: &PostgresSettings,
    ) -> Result<Self, StoreError> {
        let queue = Arc::new(CommitQueue::new(settings.waiting_max_jobs));
        let mut committer = Committer {
            scope,
            transactor,
            queue: Arc::clone(&queue),
            max_jobs: settings.group_commit_max_jobs.max(1),
            max_span: Duration::from_millis(settings.group_commit_max_ms.into()),
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || committer.run());
        let thread = thread.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(Self { queue, thread: Mutex::new(Some(thread)) })
    }

    /// Does a job in the next commit and waits for it. The work may be done several times.
    pub(super) async fn run<T, F>(&self, priority: CommitPriority, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Done<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = WorkJob { work, result: None, reply };
        self.queue.push(priority, Box::new(job)).await.map_err(|_| closed())?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Hands over a job that callers wait for, of a kind of which few wait at a time; one that comes too late is dropped.
    pub(super) fn hand_over(&self, job: Box<dyn CommitJob>) {
        drop(self.queue.push_now(CommitPriority::First, job));
    }
}

impl Drop for WriteThread {
    fn drop(&mut self) {
        // Closed before it is joined: the thread ends once nothing waits any more.
        self.queue.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("a thread that writes ended in a panic");
        }
    }
}

struct Committer {
    scope: LockScope,
    transactor: Transactor,
    queue: Arc<CommitQueue<Box<dyn CommitJob>>>,
    max_jobs: usize,
    max_span: Duration,
}

impl Committer {
    fn run(&mut self) {
        let mut preferred = CommitPriority::First;
        while let Some((priority, first)) = self.queue.take(preferred) {
            let mut group = vec![first];
            let committed = self.commit(priority, &mut group);
            for job in group {
                job.answer(committed.clone());
            }
            preferred = match preferred {
                CommitPriority::First => CommitPriority::Usual,
                CommitPriority::Usual => CommitPriority::First,
            };
        }
    }

    /// Works on what waits and commits it.
    fn commit(
        &mut self,
        priority: CommitPriority,
        group: &mut Vec<Box<dyn CommitJob>>,
    ) -> Result<(), StoreError> {
        let Self { scope, transactor, queue, max_jobs, max_span } = self;
        let (begun, mut hurries) = (Instant::now(), priority == CommitPriority::First);
        transactor.commit(*scope, |connection| {
            // Done again, it begins with the first job: those that were taken before belong to this commit.
            let mut at = 0;
            loop {
                work_on(connection, group[at].as_mut())?;
                at += 1;
                if at < group.len() {
                    continue;
                }
                if at == *max_jobs || begun.elapsed() >= *max_span {
                    return write_last(connection);
                }
                let hurried = queue.try_take(CommitPriority::First);
                // A commit that somebody waits for takes no more of what can wait.
                hurries |= hurried.is_some();
                let patient = || if hurries { None } else { queue.try_take(CommitPriority::Usual) };
                match hurried.or_else(patient) {
                    Some(next) => group.push(next),
                    None => return write_last(connection),
                }
            }
        })
    }
}

/// Works on one job, and takes back what it wrote when it fails.
fn work_on(connection: &Connection, job: &mut dyn CommitJob) -> Done<()> {
    // Sent along with the job's first statement: a turn over the network for each would cost more than the job.
    let mark = connection.begin_part()?;
    let keep = job.work(connection);
    // Asked before `keep` counts: the job's answer belongs to a transaction that is gone.
    if connection.standing() != ConnectionStanding::Fine {
        return Err(unavailable("the transaction was taken back"));
    }
    if !keep {
        return connection.undo_part(mark);
    }
    connection.keep_part()
}
