//! Receipts on their way to the ledger: those that come while others are written are written together. What cannot be written of one
//! device holds up no other.

mod unwritten;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use stentor_core::id::{AppId, DeviceId, IdSource};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::store::{Store, StoreError};
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
    /// The session that is to be told, if there is one.
    session: Option<Arc<SessionState>>,
    ended: EndedDeliveries,
    /// Failed attempts to write them while others were written.
    tries: u32,
}

/// The way to the writer. What waits in it is bounded by the windows of the sessions.
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

    /// Hands receipts over; the session, if there is one, is told when they are written.
    pub(crate) fn write(&self, session: Option<&Arc<SessionState>>, ended: EndedDeliveries) {
        let Some(device) = ended.receipts.first().map(|receipt| receipt.device) else { return };
        // First: whoever asks after this waits for them.
        self.unwritten.add(device);
        let work = DeviceReceipts { device, session: session.cloned(), ended, tries: 0 };
        if self.works.send(work).is_err() {
            // Without a writer nothing more is written: what is not will be given and confirmed once more.
            self.unwritten.remove(device);
        }
    }

    /// Waits until all receipts of a device that were handed over before are written.
    pub(crate) async fn written(&self, device: DeviceId) {
        self.unwritten.none_of(device).await;
    }

    /// Waits until all receipts that were handed over before are written.
    pub(crate) async fn all_written(&self) {
        self.unwritten.none().await;
    }

    /// Returns for how long receipts have waited of which none was written.
    pub(crate) fn stalled_for(&self) -> Duration {
        self.unwritten.stalled_for()
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
    /// Receipts that the store has not confirmed yet.
    pub(crate) doubts: Arc<Doubts>,
    /// Senders who wait for one of them.
    pub(crate) waits: Arc<ReceiptWaits>,
}

/// The writer at work.
struct ReceiptTask {
    writer: ReceiptWriter,
    unwritten: Arc<UnwrittenReceipts>,
}

impl ReceiptTask {
    async fn run(self, mut inbox: mpsc::UnboundedReceiver<DeviceReceipts>) {
        let (mut fresh, mut late, mut retry_at) = (Vec::new(), Vec::new(), Instant::now());
        loop {
            tokio::select! {
                // What is late has its turn also while more comes all the time.
                biased;
                () = tokio::time::sleep_until(retry_at), if !late.is_empty() => {}
                count = inbox.recv_many(&mut fresh, RECEIPTS_AT_ONCE_MAX_COUNT) => if count == 0 { return },
            }
            // Apart from what is new, which nothing may be wrong with.
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

    /// Writes receipts; returns those that could not be written now. What alone cannot be written while the rest can is given up
    /// after a few tries.
    async fn write(&self, all: Vec<DeviceReceipts>) -> Vec<DeviceReceipts> {
        let (mut parts, mut late) = (vec![all], Vec::new());
        while let Some(mut some) = parts.pop() {
            let Err(problem) = self.writer.try_write(&some).await else {
                some.into_iter().for_each(|one| self.finish(one));
                continue;
            };
            let is_of_the_engine = problem.is_of_the_engine();
            if is_of_the_engine && self.writer.store.try_to_write().await.is_err() {
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

    /// Makes room in the window of a device whose receipts are written.
    fn finish(&self, one: DeviceReceipts) {
        self.writer.waits.written(&one.ended.receipts);
        if let Some(session) = &one.session {
            // Only now: room in a window means that the ledger would not give the delivery again.
            let given = session.written(&one.ended.receipts);
            self.writer.doubts.confirmed(&given);
        }
        self.unwritten.remove(one.device);
    }

    /// Drops receipts of a device that the store does not take, one by one: others of the same device it may take.
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
    /// Keeps what senders are to be told, and then what the ledger is to note: the other way round a crash between would leave a
    /// sender without a receipt for good.
    async fn try_write(&self, some: &[DeviceReceipts]) -> Result<(), StoreError> {
        if some.is_empty() {
            return Ok(());
        }
        let began = self.clock.now();
        let wanted: Vec<_> = some.iter().flat_map(|one| &one.ended.wanted).collect();
        if !wanted.is_empty() {
            let kept = wanted.iter().map(|wanted| wanted.kept(&self.ids, began)).collect();
            self.store.keep_upstream(kept).await?;
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
