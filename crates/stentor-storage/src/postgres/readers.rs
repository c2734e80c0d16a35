//! Reader connections, beside those of the writers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use stentor_core::ports::store::StoreError;
use tokio::sync::oneshot;

use super::connection::{PostgresConnection as Connection, closed};
use super::transactor::Transactor;
use crate::commit_queue::{CommitPriority, CommitQueue};
use crate::sql::{Done, damaged};

/// The preferred priorities of the threads, in turn. The only thread of a pool prefers the reads of callers.
const PREFERRED: [CommitPriority; 2] = [CommitPriority::First, CommitPriority::Usual];

/// A read that waits.
type ReadJob = Box<dyn FnOnce(&mut Transactor) + Send>;

/// A bounded pool of reader threads, each with its own connection. Every other thread prefers the reads of callers, and the rest those of
/// the audience work: neither kind waits for more than one read of the other, however many there are.
pub(super) struct ReadThreads {
    queue: Arc<CommitQueue<ReadJob>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl ReadThreads {
    /// Starts a thread for each connection.
    pub(super) fn start(
        name: &str,
        transactors: Vec<Transactor>,
        waiting_max_jobs: usize,
    ) -> Result<Self, StoreError> {
        let queue: Arc<CommitQueue<ReadJob>> = Arc::new(CommitQueue::new(waiting_max_jobs));
        let mut threads = Vec::with_capacity(transactors.len());
        for (mut transactor, preferred) in transactors.into_iter().zip(PREFERRED.into_iter().cycle()) {
            let queue = Arc::clone(&queue);
            let work = move || {
                while let Some((_, job)) = queue.take(preferred) {
                    job(&mut transactor);
                }
            };
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
            threads.push(thread.map_err(|error| StoreError::Unavailable(error.to_string()))?);
        }
        Ok(Self { queue, threads: Mutex::new(threads) })
    }

    /// Reads, in one snapshot or with one for each statement. The work may be done several times.
    pub(super) async fn run<T, F>(
        &self,
        (priority, in_snapshot): (CommitPriority, bool),
        work: F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Done<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = move |transactor: &mut Transactor| {
            let done = catch_unwind(AssertUnwindSafe(|| transactor.read(in_snapshot, &work)));
            let done = done.unwrap_or_else(|_| Err(damaged("a read panicked")));
            // A caller that went away does not need an answer.
            let _ = reply.send(done.map_err(StoreError::from));
        };
        self.queue.push(priority, Box::new(job)).await.map_err(|_| closed())?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }
}

impl Drop for ReadThreads {
    fn drop(&mut self) {
        // Closed before they are joined: a thread ends once nothing waits any more.
        self.queue.close();
        for thread in self.threads.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread that reads ended in a panic");
            }
        }
    }
}
