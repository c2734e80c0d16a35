//! Writer threads: waiting jobs are committed together, and answered after the commit.
//!
//! A commit costs a flush of the server's disk and some network round trips, however much it contains. Therefore many small jobs share
//! one (group commit). Each job is a savepoint of its own: a job that fails does not affect the others. Jobs for a waiting caller or a
//! single device go first, and their commit takes no others; but every other commit begins with a job that moves
//! audiences. Rows that all transactions write come after the last job.

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

/// A waiting job with its answer. Its work may be repeated.
pub(super) trait CommitJob: Send {
    /// Executes the work inside the open transaction; returns true if it is to be committed.
    fn work(&mut self, connection: &Connection) -> bool;
    /// Sends the answer after the commit, or after its failure.
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
        // An uncommitted result is no answer; a refusal stands, whether or not the commit succeeded.
        let result = match (self.result, committed) {
            (Some(Ok(_)) | None, Err(error)) => Err(error),
            (Some(result), _) => result,
            (None, Ok(())) => Err(StoreError::Unavailable("the job was never begun".into())),
        };
        // A caller that went away does not need an answer.
        let _ = self.reply.send(result);
    }
}

/// A writer thread; dropping it waits until all its jobs are committed.
pub(super) struct WriteThread {
    queue: Arc<CommitQueue<Box<dyn CommitJob>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl WriteThread {
    /// Starts the thread. Its transactions hold the lock of `scope`.
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

    /// Executes a job in the next commit and waits for it. The work may be repeated.
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

    /// Queues a job that callers wait for, of a kind that is rare; it is dropped if the thread has ended.
    pub(super) fn hand_over(&self, job: Box<dyn CommitJob>) {
        drop(self.queue.push_now(CommitPriority::First, job));
    }
}

impl Drop for WriteThread {
    fn drop(&mut self) {
        // Closed before the join: the thread ends once the queue is empty.
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

    /// Executes the waiting jobs and commits them.
    fn commit(
        &mut self,
        priority: CommitPriority,
        group: &mut Vec<Box<dyn CommitJob>>,
    ) -> Result<(), StoreError> {
        let Self { scope, transactor, queue, max_jobs, max_span } = self;
        let (begun, mut hurries) = (Instant::now(), priority == CommitPriority::First);
        transactor.commit(*scope, |connection| {
            // A repetition begins with the first job: the jobs taken before belong to this commit.
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
                // A commit with a waiting caller takes no more jobs that can wait.
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

/// Executes one job, and rolls it back if it fails.
fn work_on(connection: &Connection, job: &mut dyn CommitJob) -> Done<()> {
    // Sent along with the job's first statement: a round trip for each savepoint would cost more than the job.
    let mark = connection.begin_part()?;
    let keep = job.work(connection);
    // Checked before `keep`: the job's answer belongs to a transaction that is gone.
    if connection.standing() != ConnectionStanding::Fine {
        return Err(unavailable("the transaction was taken back"));
    }
    if !keep {
        return connection.undo_part(mark);
    }
    connection.keep_part()
}
