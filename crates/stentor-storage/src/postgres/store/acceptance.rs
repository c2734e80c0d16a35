//! Messages of many callers, kept together with the same few statements: each statement has a price of its own.

use std::sync::{Arc, Mutex, PoisonError};

use stentor_core::ports::store::{NewMessage, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::accept::{self, AcceptedResult};
use super::node_events;
use super::nodes::OwnInstance;
use crate::postgres::connection::closed;
use crate::postgres::engine::Connection;
use crate::postgres::writer::{CommitJob, WriteThread};
use crate::sql::{Done, attempt};

/// What callers gave that nobody keeps yet.
pub(super) struct AcceptanceList {
    waiting: Mutex<Vec<GivenMessages>>,
    places: Arc<Semaphore>,
    /// Which of the nodes this is.
    own: Arc<OwnInstance>,
}

/// What one caller gave.
struct GivenMessages {
    messages: Vec<NewMessage>,
    reply: oneshot::Sender<Vec<AcceptedResult>>,
    kept: Option<Result<Vec<AcceptedResult>, StoreError>>,
    /// Given back once the caller has a reply.
    _place: OwnedSemaphorePermit,
}

impl AcceptanceList {
    /// Makes an empty list; callers beyond its places wait.
    pub(super) fn new(places: usize, own: Arc<OwnInstance>) -> Self {
        let places = Arc::new(Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS)));
        Self { waiting: Mutex::default(), places, own }
    }

    /// Keeps messages in the next commit, beside those of others. Reply i belongs to message i.
    pub(super) async fn accept(
        self: Arc<Self>,
        thread: &WriteThread,
        given: Vec<NewMessage>,
    ) -> Vec<AcceptedResult> {
        let count = given.len();
        let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
            return refused(count, &closed());
        };
        let (reply, answer) = oneshot::channel();
        let is_first = self.add(GivenMessages { messages: given, reply, kept: None, _place: place });
        // The job of the first takes whatever waits by then.
        if is_first {
            thread.hand_over(Box::new(AcceptanceJob { list: self, taken: None }));
        }
        answer.await.unwrap_or_else(|_| refused(count, &closed()))
    }

    /// Adds what a caller gave; returns whether nothing waited before.
    fn add(&self, given: GivenMessages) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(given);
        // Asked under the lock by which a job takes all: who finds it empty hands over the next job.
        waiting.len() == 1
    }

    fn take(&self) -> Vec<GivenMessages> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Keeps what waits when its turn comes.
struct AcceptanceJob {
    list: Arc<AcceptanceList>,
    /// What it took when its turn came.
    taken: Option<Vec<GivenMessages>>,
}

impl CommitJob for AcceptanceJob {
    fn work(&mut self, connection: &Connection) -> bool {
        // Once: where the transaction is done again, those who came since belong to the next job.
        let taken = self.taken.get_or_insert_with(|| self.list.take());
        let Err(fault) = keep(connection, taken) else {
            // Another may be the one that begins it.
            if let Some(own) = self.list.own.among_others() {
                node_events::wake(connection, own);
            }
            return true;
        };
        let fault = StoreError::from(fault);
        for given in taken {
            given.kept = Some(Err(fault.clone()));
        }
        false
    }

    fn answer(mut self: Box<Self>, committed: Result<(), StoreError>) {
        let taken = self.taken.replace(Vec::new());
        for GivenMessages { messages, reply, kept, .. } in taken.unwrap_or_else(|| self.list.take()) {
            // What was not committed is no answer; a refusal stands, whatever became of the commit.
            let kept = match (kept, &committed) {
                (Some(Ok(_)) | None, Err(error)) => Err(error.clone()),
                (None, Ok(())) => Err(closed()),
                (Some(kept), _) => kept,
            };
            // A caller that went away does not need an answer.
            let _ = reply.send(kept.unwrap_or_else(|error| refused(messages.len(), &error)));
        }
    }
}

impl Drop for AcceptanceJob {
    fn drop(&mut self) {
        // Who waits for a job that was never begun is told by the end of the channel.
        if self.taken.is_none() {
            drop(self.list.take());
        }
    }
}

/// Keeps all that was given; where one caller's messages break the whole, each caller's alone.
fn keep(connection: &Connection, taken: &mut [GivenMessages]) -> Done<()> {
    let all: Vec<&NewMessage> = taken.iter().flat_map(|given| &given.messages).collect();
    if let Ok(replies) = attempt(connection, || accept::accept(connection, &all))? {
        let mut replies = replies.into_iter();
        for given in taken {
            given.kept = Some(Ok(replies.by_ref().take(given.messages.len()).collect()));
        }
        return Ok(());
    }
    for given in taken {
        let own: Vec<&NewMessage> = given.messages.iter().collect();
        let kept = attempt(connection, || accept::accept(connection, &own))?;
        given.kept = Some(kept.map_err(StoreError::from));
    }
    Ok(())
}

fn refused(count: usize, error: &StoreError) -> Vec<AcceptedResult> {
    vec![Err(error.clone()); count]
}
