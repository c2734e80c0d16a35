//! Reads of waiting deliveries from the ledger. Requests that come during a read are combined into the next one, for instance when all
//! devices reconnect after a restart.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use stentor_core::id::{AppId, DeviceId};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::store::{PendingDelivery, ReceiptStore, StoreError};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use crate::identity::DeviceIdentity;
use crate::limits::{PENDING_DEVICES_AT_ONCE_MAX_COUNT, PENDING_MAX_COUNT, PENDING_READS_MAX_COUNT};

type PendingReply = Result<Vec<PendingDelivery>, StoreError>;

/// A request for the waiting deliveries of a device.
struct PendingQuestion {
    device: (AppId, DeviceId),
    reply: oneshot::Sender<PendingReply>,
}

type PendingInbox = Mutex<mpsc::UnboundedReceiver<PendingQuestion>>;

/// The queue of requests to the readers. It is bounded by the sessions and requests, each of which has one request at a time.
#[derive(Clone)]
pub(crate) struct PendingReads {
    questions: mpsc::UnboundedSender<PendingQuestion>,
}

impl PendingReads {
    /// Starts the readers; they end when their handles are dropped.
    pub(crate) fn start(
        store: &Arc<dyn ReceiptStore>,
        clock: &Arc<dyn Clock>,
    ) -> (Self, [AbortOnDropHandle<()>; PENDING_READS_MAX_COUNT]) {
        let (questions, inbox) = mpsc::unbounded_channel();
        let inbox = Arc::new(Mutex::new(inbox));
        let readers = std::array::from_fn(|_| {
            let reader = PendingReader { store: Arc::clone(store), clock: Arc::clone(clock) };
            AbortOnDropHandle::new(tokio::spawn(reader.run(Arc::clone(&inbox))))
        });
        (Self { questions }, readers)
    }

    /// Lists the waiting deliveries of a device, at most one more than the limit.
    pub(crate) async fn pending(&self, DeviceIdentity { app, device }: DeviceIdentity) -> PendingReply {
        let (reply, replied) = oneshot::channel();
        let ended = || StoreError::Unavailable("the gateway has ended".to_owned());
        self.questions.send(PendingQuestion { device: (app, device), reply }).map_err(|_| ended())?;
        replied.await.map_err(|_| ended())?
    }
}

/// One of the reader tasks.
struct PendingReader {
    store: Arc<dyn ReceiptStore>,
    clock: Arc<dyn Clock>,
}

impl PendingReader {
    async fn run(self, inbox: Arc<PendingInbox>) {
        loop {
            let mut questions = Vec::new();
            // A reader that waits here for the first request blocks the others, which have nothing to do either.
            let count = inbox.lock().await.recv_many(&mut questions, PENDING_DEVICES_AT_ONCE_MAX_COUNT).await;
            if count == 0 {
                return;
            }
            // Drops requests of closed connections.
            questions.retain(|question| !question.reply.is_closed());
            if !questions.is_empty() {
                self.reply(questions).await;
            }
        }
    }

    async fn reply(&self, questions: Vec<PendingQuestion>) {
        let devices: Vec<_> = questions.iter().map(|question| question.device).collect();
        match self.read(&devices).await {
            Err(StoreError::Damaged(_) | StoreError::Unreadable(_)) if questions.len() > 1 => {
                // Read one by one, so that unreadable rows of one device do not affect others.
                for PendingQuestion { device, reply } in questions {
                    let found = self.read(&[device]).await;
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

    async fn read(&self, devices: &[(AppId, DeviceId)]) -> Result<Vec<Vec<PendingDelivery>>, StoreError> {
        // One more than the limit, to detect an excess.
        self.store.pending(devices, PENDING_MAX_COUNT + 1, self.clock.now()).await
    }
}
