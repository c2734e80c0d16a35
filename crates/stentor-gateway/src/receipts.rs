//! Receipts on their way to the ledger: those that come while others are written are written together.

use std::sync::Arc;

use stentor_core::id::{AppId, IdSource};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::store::{Store, StoreError};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use crate::doubts::Doubts;
use crate::limits::{RECEIPT_RETRY, RECEIPTS_AT_ONCE_MAX_COUNT};
use crate::receipt_waits::ReceiptWaits;
use crate::sender_receipts::EndedDeliveries;
use crate::session_state::SessionState;
use crate::stats::GatewayCounts;

/// What the writer is asked for.
enum ReceiptWork {
    /// Receipts of one device, and its session where it is to be told.
    Write(Option<Arc<SessionState>>, EndedDeliveries),
    /// To tell when all that came before is written.
    Notify(oneshot::Sender<()>),
}

/// The way to the writer. What waits in it is bounded by the windows of the sessions.
#[derive(Clone)]
pub(crate) struct Receipts {
    works: mpsc::UnboundedSender<ReceiptWork>,
}

impl Receipts {
    /// Starts the writer; it ends when its handle is dropped.
    pub(crate) fn start(writer: ReceiptWriter) -> (Self, AbortOnDropHandle<()>) {
        let (works, inbox) = mpsc::unbounded_channel();
        let writer = tokio::spawn(writer.run(inbox));
        (Self { works }, AbortOnDropHandle::new(writer))
    }

    /// Hands receipts over; the session, if there is one, is told when they are written.
    pub(crate) fn write(&self, session: Option<&Arc<SessionState>>, ended: EndedDeliveries) {
        if !ended.receipts.is_empty() {
            let _gone_with_the_process = self.works.send(ReceiptWork::Write(session.cloned(), ended));
        }
    }

    /// Waits until all receipts handed over before are written.
    pub(crate) async fn written(&self) {
        let (tell, told) = oneshot::channel();
        if self.works.send(ReceiptWork::Notify(tell)).is_ok() {
            // Without a writer nothing more is written: what is not will be given and confirmed once more.
            let _ = told.await;
        }
    }
}

/// What writes receipts.
pub(crate) struct ReceiptWriter {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<IdSource>,
    /// The apps for whose senders something waits.
    pub(crate) arrivals: broadcast::Sender<AppId>,
    pub(crate) counts: Arc<GatewayCounts>,
    /// What is not confirmed yet.
    pub(crate) doubts: Arc<Doubts>,
    /// Senders who wait for one of them.
    pub(crate) waits: Arc<ReceiptWaits>,
}

impl ReceiptWriter {
    async fn run(self, mut inbox: mpsc::UnboundedReceiver<ReceiptWork>) {
        let mut gathered = Vec::new();
        while inbox.recv_many(&mut gathered, RECEIPTS_AT_ONCE_MAX_COUNT).await > 0 {
            let (mut ended, mut sessions, mut waiting) = (EndedDeliveries::default(), Vec::new(), Vec::new());
            for work in gathered.drain(..) {
                match work {
                    ReceiptWork::Write(session, some) => {
                        let first = ended.receipts.len();
                        sessions.push((session, first..first + some.receipts.len()));
                        ended.receipts.extend(some.receipts);
                        ended.wanted.extend(some.wanted);
                    }
                    ReceiptWork::Notify(tell) => waiting.push(tell),
                }
            }
            // Before anybody is told: room in a window means that the ledger would not give the delivery again.
            self.write(&ended).await;
            let mut given = Vec::new();
            self.waits.written(&ended.receipts);
            for (session, range) in sessions {
                let Some(session) = session else { continue };
                given.extend(session.written(ended.receipts.get(range).unwrap_or_default()));
            }
            self.doubts.confirmed(&given);
            // Of those that came before it in the queue all are written by now, for they were gathered in order.
            for tell in waiting {
                let _nobody_waits_any_more = tell.send(());
            }
        }
    }

    /// Writes receipts, however long that takes: what is confirmed would otherwise be given again.
    async fn write(&self, ended: &EndedDeliveries) {
        if ended.receipts.is_empty() {
            return;
        }
        let began = self.clock.now();
        loop {
            match self.try_write(ended).await {
                Ok(changed) => {
                    let written = changed.iter().filter(|changed| **changed).count();
                    return self.counts.note_receipts(
                        written,
                        changed.len() - written,
                        self.clock.now().since(began),
                    );
                }
                Err(error) => {
                    tracing::warn!(%error, "receipts could not be written; they are tried again");
                    tokio::time::sleep(RECEIPT_RETRY).await;
                }
            }
        }
    }

    /// Keeps what senders are to be told, and then what the ledger is to note: the other way round a crash between would leave a
    /// sender without a receipt for good.
    async fn try_write(&self, ended: &EndedDeliveries) -> Result<Vec<bool>, StoreError> {
        let now = self.clock.now();
        if !ended.wanted.is_empty() {
            let kept = ended.wanted.iter().map(|wanted| wanted.kept(&self.ids, now)).collect();
            self.store.keep_upstream(kept).await?;
            for wanted in &ended.wanted {
                let _nobody_listens = self.arrivals.send(wanted.app());
            }
        }
        self.store.receive(ended.receipts.clone(), now).await
    }
}
