//! The writer of receipts. Receipts that come during a write are combined into the next one. A receipt that cannot be written does not
//! delay those of other devices.

mod unwritten;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use stentor_core::id::{AppId, DeviceId, IdSource};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::store::{ReceiptWriterStore, StoreError, WriteProof};
use tokio::sync::{broadcast, mpsc};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::doubts::Doubts;
use crate::limits::{RECEIPT_RETRY, RECEIPT_TRIES_MAX_COUNT, RECEIPTS_AT_ONCE_MAX_COUNT};
use crate::receipt_waits::ReceiptWaits;
use crate::sender_receipts::EndedDeliveries;
use crate::session_state::SessionState;
use crate::stats::GatewayCounts;
use unwritten::UnwrittenReceipts;

/// Receipts of one device.
struct DeviceReceipts {
    device: DeviceId,
    /// The session to notify, if there is one.
    session: Option<Arc<SessionState>>,
    ended: EndedDeliveries,
    /// Failed attempts to write them while others succeeded.
    tries: u32,
}

/// The queue to the writer. It is bounded by the windows of the sessions.
#[derive(Clone)]
pub(crate) struct Receipts {
    works: mpsc::UnboundedSender<DeviceReceipts>,
    unwritten: Arc<UnwrittenReceipts>,
}

impl Receipts {
    /// Starts the writer; it ends when its handle is dropped.
    pub(crate) fn start(writer: ReceiptWriter) -> (Self, AbortOnDropHandle<()>) {
        let (works, inbox) = mpsc::unbounded_channel();
        let unwritten = Arc::new(UnwrittenReceipts::default());
        let task = ReceiptTask { writer, unwritten: Arc::clone(&unwritten) };
        (Self { works, unwritten }, AbortOnDropHandle::new(tokio::spawn(task.run(inbox))))
    }

    /// Queues receipts; the session, if there is one, is notified once they are written.
    pub(crate) fn write(&self, session: Option<&Arc<SessionState>>, ended: EndedDeliveries) {
        let Some(device) = ended.receipts.first().map(|receipt| receipt.device) else { return };
        // First, so that later callers of `written` wait for them.
        self.unwritten.add(device);
        let work = DeviceReceipts { device, session: session.cloned(), ended, tries: 0 };
        if self.works.send(work).is_err() {
            // Without a writer they stay unwritten, and their deliveries will be repeated and confirmed again.
            self.unwritten.remove(device);
        }
    }

    /// Waits until all receipts of a device queued so far are written.
    pub(crate) async fn written(&self, device: DeviceId) {
        self.unwritten.none_of(device).await;
    }

    /// Waits until all receipts queued so far are written.
    pub(crate) async fn all_written(&self) {
        self.unwritten.none().await;
    }

    /// Returns the time for which receipts have waited without any being written.
    pub(crate) fn stalled_for(&self) -> Duration {
        self.unwritten.stalled_for()
    }
}

/// The services of the writer.
pub(crate) struct ReceiptWriter {
    pub(crate) store: Arc<dyn ReceiptWriterStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<IdSource>,
    /// Announces apps with new messages for their senders.
    pub(crate) arrivals: broadcast::Sender<AppId>,
    pub(crate) counts: Arc<GatewayCounts>,
    /// Receipts that the store has not confirmed yet.
    pub(crate) doubts: Arc<Doubts>,
    /// Senders that wait for a receipt.
    pub(crate) waits: Arc<ReceiptWaits>,
}

/// The running writer.
struct ReceiptTask {
    writer: ReceiptWriter,
    unwritten: Arc<UnwrittenReceipts>,
}

impl ReceiptTask {
    async fn run(self, mut inbox: mpsc::UnboundedReceiver<DeviceReceipts>) {
        let (mut fresh, mut late, mut retry_at) = (Vec::new(), Vec::new(), Instant::now());
        loop {
            tokio::select! {
                // Delayed receipts have their turn even if new ones keep coming.
                biased;
                () = tokio::time::sleep_until(retry_at), if !late.is_empty() => {}
                count = inbox.recv_many(&mut fresh, RECEIPTS_AT_ONCE_MAX_COUNT) => if count == 0 { return },
            }
            // Written apart from the delayed ones, so that a defect among those does not affect new ones.
            let mut left = self.write(std::mem::take(&mut fresh)).await;
            if retry_at <= Instant::now() {
                let mut rest = std::mem::take(&mut late);
                while !rest.is_empty() {
                    let some = rest.split_off(rest.len().saturating_sub(RECEIPTS_AT_ONCE_MAX_COUNT));
                    left.extend(self.write(some).await);
                }
                retry_at = Instant::now() + RECEIPT_RETRY;
            }
            late.extend(left);
        }
    }

    /// Writes receipts; returns those that cannot be written now. A receipt that repeatedly fails alone is given up after a few tries.
    async fn write(&self, all: Vec<DeviceReceipts>) -> Vec<DeviceReceipts> {
        let (mut parts, mut late) = (vec![all], Vec::new());
        while let Some(mut some) = parts.pop() {
            let Err(problem) = self.writer.try_write(&some).await else {
                some.into_iter().for_each(|one| self.finish(one));
                continue;
            };
            let is_of_the_engine = problem.is_of_the_engine();
            if is_of_the_engine && self.writer.store.keeps(WriteProof::Now).await.is_err() {
                tracing::warn!(%problem, "receipts cannot be written now; they are tried again");
                late.extend(some);
                late.extend(parts.into_iter().flatten());
                tokio::time::sleep(RECEIPT_RETRY).await;
                return late;
            }
            if some.len() > 1 {
                let rest = some.split_off(some.len() / 2);
                parts.extend([rest, some]);
                continue;
            }
            for mut one in some {
                one.tries += 1;
                if is_of_the_engine && one.tries < RECEIPT_TRIES_MAX_COUNT {
                    late.push(one);
                } else {
                    self.give_up(one, &problem).await;
                }
            }
        }
        late
    }

    /// Makes room in the window of a device after its receipts are written.
    fn finish(&self, one: DeviceReceipts) {
        self.writer.waits.written(&one.ended.receipts);
        if let Some(session) = &one.session {
            // Only now: room in a window means that the ledger would not return the delivery again.
            let given = session.written(&one.ended.receipts);
            self.writer.doubts.confirmed(&given);
        }
        self.unwritten.remove(one.device);
    }

    /// Writes the receipts of a device one by one, and drops those that the store rejects.
    async fn give_up(&self, mut one: DeviceReceipts, problem: &StoreError) {
        let receipts = std::mem::take(&mut one.ended.receipts);
        for receipt in &receipts {
            let single = EndedDeliveries { receipts: vec![*receipt], wanted: Vec::new() };
            let single = DeviceReceipts { session: None, ended: single, tries: 0, device: one.device };
            if self.writer.try_write(std::slice::from_ref(&single)).await.is_ok() {
                one.ended.receipts.push(*receipt);
                continue;
            }
            tracing::error!(%problem, device = %one.device, chunk = %receipt.chunk, "a receipt cannot be written: it is given up");
            self.writer.counts.note_receipt_given_up();
            if let Some(session) = &one.session {
                self.writer.doubts.abandoned(&session.give_up(receipt.chunk));
            }
        }
        self.finish(one);
    }
}

impl ReceiptWriter {
    /// Stores the sender receipts first, and then the receipts in the ledger. In the reverse order, a crash in between would leave a sender
    /// without a receipt for good.
    async fn try_write(&self, some: &[DeviceReceipts]) -> Result<(), StoreError> {
        if some.is_empty() {
            return Ok(());
        }
        let began = self.clock.now();
        let wanted: Vec<_> = some.iter().flat_map(|one| &one.ended.wanted).collect();
        if !wanted.is_empty() {
            let payloads = wanted.iter().map(|wanted| wanted.kept(&self.ids, began)).collect();
            self.store.keep_upstream(payloads).await?;
            for wanted in wanted {
                let _nobody_listens = self.arrivals.send(wanted.app());
            }
        }
        let receipts = some.iter().flat_map(|one| &one.ended.receipts).copied().collect();
        let changed = self.store.receive(receipts, began).await?;
        let written = changed.iter().filter(|changed| **changed).count();
        self.counts.note_receipts(written, changed.len() - written, self.clock.now().since(began));
        Ok(())
    }
}
