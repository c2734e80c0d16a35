//! Receipts on their way to the ledger: those that come while others are written are written together.

use std::sync::Arc;

use stentor_core::ports::clock::Clock;
use stentor_core::ports::store::{Receipt, Store};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use crate::limits::{RECEIPT_RETRY, RECEIPTS_AT_ONCE_MAX_COUNT};
use crate::session_state::SessionState;
use crate::stats::GatewayCounts;

/// What the writer is asked for.
enum ReceiptWork {
    /// Receipts of one device, and its session where it is to be told.
    Write(Option<Arc<SessionState>>, Vec<Receipt>),
    /// To tell when all that came before is written.
    Tell(oneshot::Sender<()>),
}

/// The way to the writer. What waits in it is bounded by the windows of the sessions.
#[derive(Clone)]
pub(crate) struct Receipts {
    works: mpsc::UnboundedSender<ReceiptWork>,
}

impl Receipts {
    /// Starts the writer; it ends when its handle is dropped.
    pub(crate) fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        counts: Arc<GatewayCounts>,
    ) -> (Self, AbortOnDropHandle<()>) {
        let (works, inbox) = mpsc::unbounded_channel();
        let writer = tokio::spawn(ReceiptWriter { store, clock, counts }.run(inbox));
        (Self { works }, AbortOnDropHandle::new(writer))
    }

    /// Hands receipts over; the session, if there is one, is told when they are written.
    pub(crate) fn write(&self, session: Option<&Arc<SessionState>>, receipts: Vec<Receipt>) {
        if !receipts.is_empty() {
            let _gone_with_the_process = self.works.send(ReceiptWork::Write(session.cloned(), receipts));
        }
    }

    /// Waits until all receipts handed over before are written.
    pub(crate) async fn written(&self) {
        let (tell, told) = oneshot::channel();
        if self.works.send(ReceiptWork::Tell(tell)).is_ok() {
            let _ = told.await;
        }
    }
}

struct ReceiptWriter {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    counts: Arc<GatewayCounts>,
}

impl ReceiptWriter {
    async fn run(self, mut inbox: mpsc::UnboundedReceiver<ReceiptWork>) {
        let mut gathered = Vec::new();
        while inbox.recv_many(&mut gathered, RECEIPTS_AT_ONCE_MAX_COUNT).await > 0 {
            let (mut receipts, mut sessions, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
            for work in gathered.drain(..) {
                match work {
                    ReceiptWork::Write(session, some) => {
                        sessions.push((session, receipts.len()..receipts.len() + some.len()));
                        receipts.extend(some);
                    }
                    ReceiptWork::Tell(tell) => waiting.push(tell),
                }
            }
            self.write(&receipts).await;
            for (session, range) in sessions {
                let Some(session) = session else { continue };
                session.written(receipts.get(range).unwrap_or_default());
            }
            for tell in waiting {
                let _nobody_waits_any_more = tell.send(());
            }
        }
    }

    /// Writes receipts, however long that takes: what is confirmed would otherwise be given again.
    async fn write(&self, receipts: &[Receipt]) {
        if receipts.is_empty() {
            return;
        }
        let began = self.clock.now();
        loop {
            match self.store.receive(receipts.to_vec(), self.clock.now()).await {
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
}
