//! Messages of many callers, stored together: what they share is read and written once.

use std::sync::{Arc, Mutex, PoisonError};

use stentor_core::ports::store::{Accepted, Idempotent, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::connection::Connection;
use super::damage::attempt;
use super::error::Done;

/// The outcome of accepting a message.
pub(crate) type AcceptedResult = Result<Idempotent<Accepted>, StoreError>;

/// The messages of callers that are not stored yet, as an engine prepares them.
pub(crate) struct AcceptanceList<M> {
    waiting: Mutex<Vec<GivenMessages<M>>>,
    places: Arc<Semaphore>,
}

/// The messages of one caller.
struct GivenMessages<M> {
    messages: Vec<M>,
    reply: oneshot::Sender<Vec<AcceptedResult>>,
    outcome: Option<Result<Vec<AcceptedResult>, StoreError>>,
    /// Given back once the caller has a reply.
    _place: OwnedSemaphorePermit,
}

impl<M> AcceptanceList<M> {
    /// Creates an empty list; callers beyond its places wait.
    pub(crate) fn new(places: usize) -> Self {
        let places = Arc::new(Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS)));
        Self { waiting: Mutex::default(), places }
    }

    /// Stores messages in the next commit, together with those of other callers. Reply i belongs to message i. `hand_over` queues a job.
    pub(crate) async fn accept(
        self: Arc<Self>,
        given: Vec<M>,
        hand_over: impl FnOnce(AcceptanceWork<M>),
    ) -> Vec<AcceptedResult> {
        let count = given.len();
        let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
            return refused(count, &closed());
        };
        let (reply, answer) = oneshot::channel();
        let is_first = self.add(GivenMessages { messages: given, reply, outcome: None, _place: place });
        // The job of the first caller takes all messages that wait when it runs.
        if is_first {
            hand_over(AcceptanceWork { list: self, taken: None });
        }
        answer.await.unwrap_or_else(|_| refused(count, &closed()))
    }

    /// Adds the messages of a caller; returns true if none waited before.
    fn add(&self, given: GivenMessages<M>) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(given);
        // Checked under the lock under which a job takes all: the caller that finds the list empty queues the next job.
        waiting.len() == 1
    }

    fn take(&self) -> Vec<GivenMessages<M>> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Stores the messages that wait when it runs.
pub(crate) struct AcceptanceWork<M> {
    list: Arc<AcceptanceList<M>>,
    /// The messages that it took when it first ran.
    taken: Option<Vec<GivenMessages<M>>>,
}

impl<M> AcceptanceWork<M> {
    /// Stores all messages with `accept`, together. If one caller's messages make this fail, each caller's are stored separately. Returns
    /// true if the engine did not fail.
    pub(crate) fn run(
        &mut self,
        connection: &Connection,
        accept: impl Fn(&[&M]) -> Done<Vec<AcceptedResult>>,
    ) -> bool {
        // Taken once: if the transaction is repeated, later messages belong to the next job.
        let taken = self.taken.get_or_insert_with(|| self.list.take());
        let Err(fault) = keep(connection, taken, accept) else { return true };
        let fault = StoreError::from(fault);
        for given in taken {
            given.outcome = Some(Err(fault.clone()));
        }
        false
    }

    /// Replies to the callers after the commit, or after its failure.
    pub(crate) fn answer(mut self, committed: &Result<(), StoreError>) {
        let taken = self.taken.replace(Vec::new());
        for GivenMessages { messages, reply, outcome, .. } in taken.unwrap_or_else(|| self.list.take()) {
            // An uncommitted result is no answer; a refusal stands, whether or not the commit succeeded.
            let outcome = match (outcome, committed) {
                (Some(Ok(_)) | None, Err(error)) => Err(error.clone()),
                (None, Ok(())) => Err(closed()),
                (Some(outcome), _) => outcome,
            };
            // A caller that went away does not need an answer.
            let _ = reply.send(outcome.unwrap_or_else(|error| refused(messages.len(), &error)));
        }
    }
}

impl<M> Drop for AcceptanceWork<M> {
    fn drop(&mut self) {
        // If the job never ran, the closed channel informs its waiting callers.
        if self.taken.is_none() {
            drop(self.list.take());
        }
    }
}

fn keep<M>(
    connection: &Connection,
    taken: &mut [GivenMessages<M>],
    accept: impl Fn(&[&M]) -> Done<Vec<AcceptedResult>>,
) -> Done<()> {
    let all: Vec<&M> = taken.iter().flat_map(|given| &given.messages).collect();
    if let Ok(replies) = attempt(connection, || accept(&all))? {
        let mut replies = replies.into_iter();
        for given in taken {
            given.outcome = Some(Ok(replies.by_ref().take(given.messages.len()).collect()));
        }
        return Ok(());
    }
    for given in taken {
        let messages: Vec<&M> = given.messages.iter().collect();
        let outcome = attempt(connection, || accept(&messages))?;
        given.outcome = Some(outcome.map_err(StoreError::from));
    }
    Ok(())
}

fn refused(count: usize, error: &StoreError) -> Vec<AcceptedResult> {
    vec![Err(error.clone()); count]
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}
