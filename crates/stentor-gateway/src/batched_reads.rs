//! Reads of the store for connections. Requests that come during a read are combined into the next one, for instance when all devices
//! reconnect after a restart.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;

use stentor_core::ports::store::StoreError;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use crate::limits::{READS_AT_ONCE_MAX_COUNT, READS_MAX_COUNT};

/// A read that replies to many requests.
pub(crate) trait BatchedRead: Send + Sync + 'static {
    /// A request.
    type Key: Clone + Send + Sync + 'static;
    /// The reply to a request.
    type Found: Default + Send + 'static;

    /// Reads for all keys. Reply i belongs to key i.
    fn read(&self, keys: &[Self::Key]) -> impl Future<Output = Result<Vec<Self::Found>, StoreError>> + Send;
}

/// A request that waits for its reply.
struct Question<R: BatchedRead> {
    key: R::Key,
    reply: oneshot::Sender<Result<R::Found, StoreError>>,
}

type Inbox<R> = Mutex<mpsc::UnboundedReceiver<Question<R>>>;

/// The tasks that read.
pub(crate) type ReaderTasks = [AbortOnDropHandle<()>; READS_MAX_COUNT];

/// The queue of requests to the readers. It is bounded by the sessions and requests, each of which has one request at a time.
pub(crate) struct BatchedReads<R: BatchedRead> {
    questions: mpsc::UnboundedSender<Question<R>>,
}

impl<R: BatchedRead> BatchedReads<R> {
    /// Starts the readers; they end when their handles are dropped.
    pub(crate) fn start(read: R) -> (Self, ReaderTasks) {
        let (questions, inbox) = mpsc::unbounded_channel();
        let (read, inbox) = (Arc::new(read), Arc::new(Mutex::new(inbox)));
        let readers = std::array::from_fn(|_| {
            let (read, inbox) = (Arc::clone(&read), Arc::clone(&inbox));
            AbortOnDropHandle::new(tokio::spawn(async move { run(&*read, &inbox).await }))
        });
        (Self { questions }, readers)
    }

    /// Reads for one key. The read begins after this call.
    pub(crate) async fn find(&self, key: R::Key) -> Result<R::Found, StoreError> {
        let (reply, replied) = oneshot::channel();
        let ended = || StoreError::Unavailable("the gateway has ended".to_owned());
        self.questions.send(Question { key, reply }).map_err(|_| ended())?;
        replied.await.map_err(|_| ended())?
    }
}

/// Reads until no requests can come.
async fn run<R: BatchedRead>(read: &R, inbox: &Inbox<R>) {
    loop {
        let mut questions = Vec::new();
        // A reader that waits here for the first request blocks the others, which have nothing to do either.
        let count = inbox.lock().await.recv_many(&mut questions, READS_AT_ONCE_MAX_COUNT).await;
        if count == 0 {
            return;
        }
        // Drops requests of closed connections.
        questions.retain(|question| !question.reply.is_closed());
        if !questions.is_empty() {
            reply(read, questions).await;
        }
    }
}

async fn reply<R: BatchedRead>(read: &R, questions: Vec<Question<R>>) {
    let keys: Vec<_> = questions.iter().map(|question| question.key.clone()).collect();
    match read.read(&keys).await {
        Err(error) if questions.len() > 1 && !matches!(error, StoreError::Unavailable(_)) => {
            // Read one by one, so that an error of one request does not affect others.
            for Question { key, reply } in questions {
                let found = read.read(&[key]).await;
                let _nobody_asks_any_more =
                    reply.send(found.map(|mut found| found.pop().unwrap_or_default()));
            }
        }
        Err(error) => {
            for question in questions {
                let _nobody_asks_any_more = question.reply.send(Err(error.clone()));
            }
        }
        Ok(found) => {
            for (question, found) in questions.into_iter().zip(found) {
                let _nobody_asks_any_more = question.reply.send(Ok(found));
            }
        }
    }
}
