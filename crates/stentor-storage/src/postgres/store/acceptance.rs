//! Messages of many callers, stored together with the same few statements, because each statement has a cost of its own.

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

/// The messages of callers that are not stored yet.
pub(super) struct AcceptanceList {
    waiting: Mutex<Vec<GivenMessages>>,
    places: Arc<Semaphore>,
    /// The identity of this process among the nodes.
    own: Arc<OwnInstance>,
}

/// The messages of one caller.
struct GivenMessages {
    messages: Vec<NewMessage>,
    reply: oneshot::Sender<Vec<AcceptedResult>>,
    outcome: Option<Result<Vec<AcceptedResult>, StoreError>>,
    /// Given back once the caller has a reply.
    _place: OwnedSemaphorePermit,
}

impl AcceptanceList {
    /// Creates an empty list; callers beyond its places wait.
    pub(super) fn new(places: usize, own: Arc<OwnInstance>) -> Self {
        let places = Arc::new(Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS)));
        Self { waiting: Mutex::default(), places, own }
    }

    /// Stores messages in the next commit, together with those of other callers. Reply i belongs to message i.
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
        let is_first = self.add(GivenMessages { messages: given, reply, outcome: None, _place: place });
        // The job of the first caller takes all messages that wait when it runs.
        if is_first {
            thread.hand_over(Box::new(AcceptanceJob { list: self, taken: None }));
        }
        answer.await.unwrap_or_else(|_| refused(count, &closed()))
    }

    /// Adds the messages of a caller; returns true if none waited before.
    fn add(&self, given: GivenMessages) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(given);
        // Checked under the lock under which a job takes all: the caller that finds the list empty queues the next job.
        waiting.len() == 1
    }

    fn take(&self) -> Vec<GivenMessages> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Stores the messages that wait when it runs.
struct AcceptanceJob {
    list: Arc<AcceptanceList>,
    /// The messages that it took when it first ran.
    taken: Option<Vec<GivenMessages>>,
}

impl CommitJob for AcceptanceJob {
    fn work(&mut self, connection: &Connection) -> bool {
        // Taken once: if the transaction is repeated, later messages belong to the next job.
        let taken = self.taken.get_or_insert_with(|| self.list.take());
        let Err(fault) = keep(connection, taken, self.list.own.get()) else {
            // Another node may be the one that starts the campaign.
            if let Some(own) = self.list.own.among_others() {
                node_events::wake(connection, own);
            }
            return true;
        };
        let fault = StoreError::from(fault);
        for given in taken {
            given.outcome = Some(Err(fault.clone()));
        }
        false
    }

    fn answer(mut self: Box<Self>, committed: Result<(), StoreError>) {
        let taken = self.taken.replace(Vec::new());
        for GivenMessages { messages, reply, outcome, .. } in taken.unwrap_or_else(|| self.list.take()) {
            // An uncommitted result is no answer; a refusal stands, whether or not the commit succeeded.
            let outcome = match (outcome, &committed) {
                (Some(Ok(_)) | None, Err(error)) => Err(error.clone()),
                (None, Ok(())) => Err(closed()),
                (Some(outcome), _) => outcome,
            };
            // A caller that went away does not need an answer.
            let _ = reply.send(outcome.unwrap_or_else(|error| refused(messages.len(), &error)));
        }
    }
}

impl Drop for AcceptanceJob {
    fn drop(&mut self) {
        // If the job never ran, the closed channel informs its waiting callers.
        if self.taken.is_none() {
            drop(self.list.take());
        }
    }
}

/// Stores all messages together. If one caller's messages make this fail, each caller's are stored separately.
fn keep(connection: &Connection, taken: &mut [GivenMessages], own: Option<u64>) -> Done<()> {
    let all: Vec<&NewMessage> = taken.iter().flat_map(|given| &given.messages).collect();
    if let Ok(replies) = attempt(connection, || accept::accept(connection, &all, own))? {
        let mut replies = replies.into_iter();
        for given in taken {
            given.outcome = Some(Ok(replies.by_ref().take(given.messages.len()).collect()));
        }
        return Ok(());
    }
    for given in taken {
        let messages: Vec<&NewMessage> = given.messages.iter().collect();
        let outcome = attempt(connection, || accept::accept(connection, &messages, own))?;
        given.outcome = Some(outcome.map_err(StoreError::from));
    }
    Ok(())
}

fn refused(count: usize, error: &StoreError) -> Vec<AcceptedResult> {
    vec![Err(error.clone()); count]
}
