//! The job queue of a writer thread or of reader threads. Jobs with a waiting caller are apart from all others.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The priority of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitPriority {
    /// A caller, or one device, waits for it.
    First,
    /// It moves audiences.
    Usual,
}

/// The jobs of both priorities, and the places for them.
pub(crate) struct CommitQueue<J> {
    state: Mutex<CommitQueueState<J>>,
    arrived: Condvar,
    first_places: Arc<Semaphore>,
    usual_places: Arc<Semaphore>,
}

struct CommitQueueState<J> {
    first: VecDeque<QueuedJob<J>>,
    usual: VecDeque<QueuedJob<J>>,
    closed: bool,
}

struct QueuedJob<J> {
    job: J,
    /// Given back once the job leaves the queue.
    _place: Option<OwnedSemaphorePermit>,
}

impl<J> CommitQueue<J> {
    /// Creates a queue with `places` places for each priority. Callers find a place even if the places of the audience work are taken.
    pub(crate) fn new(places: usize) -> Self {
        let state = CommitQueueState { first: VecDeque::new(), usual: VecDeque::new(), closed: false };
        let semaphore = || Arc::new(Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS)));
        let (first_places, usual_places) = (semaphore(), semaphore());
        Self { state: Mutex::new(state), arrived: Condvar::new(), first_places, usual_places }
    }

    /// Appends a job, waiting for a place; gives it back when the queue is closed.
    pub(crate) async fn push(&self, priority: CommitPriority, job: J) -> Result<(), J> {
        let places = match priority {
            CommitPriority::First => &self.first_places,
            CommitPriority::Usual => &self.usual_places,
        };
        let Ok(place) = Arc::clone(places).acquire_owned().await else { return Err(job) };
        self.append(priority, QueuedJob { job, _place: Some(place) })
    }

    /// Appends a job that needs no place, because its kind is few; gives it back when the queue is closed.
    pub(crate) fn push_now(&self, priority: CommitPriority, job: J) -> Result<(), J> {
        self.append(priority, QueuedJob { job, _place: None })
    }

    fn append(&self, priority: CommitPriority, waiting: QueuedJob<J>) -> Result<(), J> {
        let mut state = self.lock();
        if state.closed {
            return Err(waiting.job);
        }
        state.jobs(priority).push_back(waiting);
        drop(state);
        // Without the lock, so that the woken thread does not have to wait for it.
        self.arrived.notify_one();
        Ok(())
    }

    /// Waits for a job and takes it, of the preferred priority if there is one; `None` once the queue is closed and empty.
    pub(crate) fn take(&self, preferred: CommitPriority) -> Option<(CommitPriority, J)> {
        let mut state = self.lock();
        loop {
            let other = if preferred == CommitPriority::First {
                CommitPriority::Usual
            } else {
                CommitPriority::First
            };
            for priority in [preferred, other] {
                if let Some(waiting) = state.jobs(priority).pop_front() {
                    return Some((priority, waiting.job));
                }
            }
            if state.closed {
                return None;
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes a job of a priority if there is one.
    pub(crate) fn try_take(&self, priority: CommitPriority) -> Option<J> {
        self.lock().jobs(priority).pop_front().map(|waiting| waiting.job)
    }

    /// Closes the queue for new jobs. Jobs already in the queue are still taken.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        // After the flag, so that a caller which has just acquired a place is refused.
        self.first_places.close();
        self.usual_places.close();
        self.arrived.notify_all();
    }

    /// Closes the queue and drops all waiting jobs.
    pub(crate) fn abandon(&self) {
        self.close();
        let (first, usual) = {
            let mut state = self.lock();
            (std::mem::take(&mut state.first), std::mem::take(&mut state.usual))
        };
        // Without the lock: dropping a job notifies its caller, which may push another job at once.
        drop((first, usual));
    }

    fn lock(&self) -> MutexGuard<'_, CommitQueueState<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J> CommitQueueState<J> {
    fn jobs(&mut self, priority: CommitPriority) -> &mut VecDeque<QueuedJob<J>> {
        match priority {
            CommitPriority::First => &mut self.first,
            CommitPriority::Usual => &mut self.usual,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn callers_find_a_place_and_go_first_where_all_places_of_audiences_are_taken() {
        let queue = CommitQueue::new(2);
        for job in ["one", "two"] {
            queue.push(CommitPriority::Usual, job).await.expect("open");
        }
        let mut third = Box::pin(queue.push(CommitPriority::Usual, "three"));
        assert!((&mut third).now_or_never().is_none(), "there is no place");
        queue.push(CommitPriority::First, "a caller's").await.expect("open");
        assert_eq!(queue.take(CommitPriority::First), Some((CommitPriority::First, "a caller's")));
        assert_eq!(queue.take(CommitPriority::First), Some((CommitPriority::Usual, "one")));
        third.await.expect("there is a place");
    }
}
