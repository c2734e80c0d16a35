//! Senders that wait for a device's receipt; the writer of receipts wakes them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use stentor_core::id::{DeviceId, MessageId};
use stentor_core::ports::store::Receipt;
use tokio::sync::Notify;

/// Most waiters for one device's receipt of one message.
const WAITS_PER_MESSAGE_MAX_COUNT: usize = 4;
/// Most waiters for one device.
const WAITS_PER_DEVICE_MAX_COUNT: usize = 64;

/// All waiters.
#[derive(Debug, Default)]
pub(crate) struct ReceiptWaits(Mutex<HashMap<DeviceId, Vec<Waiter>>>);

#[derive(Debug)]
struct Waiter {
    message: MessageId,
    woken: Arc<Notify>,
}

/// A waiter, registered until it is dropped.
#[derive(Debug)]
pub struct ReceiptWait {
    waits: Arc<ReceiptWaits>,
    device: DeviceId,
    woken: Arc<Notify>,
}

impl ReceiptWaits {
    /// Begins to wait for a device's receipt of a message; `None` if too many wait.
    pub(crate) fn begin(self: &Arc<Self>, device: DeviceId, message: MessageId) -> Option<ReceiptWait> {
        let mut all = self.lock();
        let waiters = all.entry(device).or_default();
        let for_message = waiters.iter().filter(|one| one.message == message).count();
        if for_message >= WAITS_PER_MESSAGE_MAX_COUNT || waiters.len() >= WAITS_PER_DEVICE_MAX_COUNT {
            return None;
        }
        let woken = Arc::new(Notify::new());
        waiters.push(Waiter { message, woken: Arc::clone(&woken) });
        Some(ReceiptWait { waits: Arc::clone(self), device, woken })
    }

    /// Wakes the waiters for devices with newly written receipts.
    pub(crate) fn written(&self, receipts: &[Receipt]) {
        let all = self.lock();
        if all.is_empty() {
            return;
        }
        let waiters = receipts.iter().filter_map(|receipt| all.get(&receipt.device)).flatten();
        // Also a waiter that is not polled yet: the permit is stored for it.
        waiters.for_each(|waiter| waiter.woken.notify_one());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<DeviceId, Vec<Waiter>>> {
        self.0.lock()
    }
}

impl ReceiptWait {
    /// Waits until a receipt of the device was written since the last call.
    pub async fn notified(&self) {
        self.woken.notified().await;
    }
}

impl Drop for ReceiptWait {
    fn drop(&mut self) {
        let mut all = self.waits.lock();
        let Some(waiters) = all.get_mut(&self.device) else { return };
        waiters.retain(|one| !Arc::ptr_eq(&one.woken, &self.woken));
        if waiters.is_empty() {
            all.remove(&self.device);
        }
    }
}

#[cfg(test)]
mod tests {
    use stentor_core::id::ChunkId;
    use stentor_core::ports::store::ReceiptKind;

    use super::*;

    fn receipt(device: u64) -> Receipt {
        Receipt {
            chunk: ChunkId::from_raw(1),
            device: DeviceId::from_raw(device),
            kind: ReceiptKind::Delivered,
        }
    }

    #[tokio::test]
    async fn who_waits_is_woken_by_the_word_of_its_device_and_by_no_other() {
        let waits = Arc::new(ReceiptWaits::default());
        let wait = waits.begin(DeviceId::from_raw(1), MessageId::from_raw(1)).expect("the first");
        waits.written(&[receipt(2)]);
        assert!(futures_util::poll!(std::pin::pin!(wait.notified())).is_pending());
        waits.written(&[receipt(1)]);
        wait.notified().await;
        drop(wait);
        assert!(waits.lock().is_empty(), "who has gone is forgotten");
    }

    #[test]
    fn so_many_wait_for_one_message_and_no_more() {
        let waits = Arc::new(ReceiptWaits::default());
        let begin = |message| waits.begin(DeviceId::from_raw(1), MessageId::from_raw(message));
        let waiting: Vec<_> = (0..10).filter_map(|_| begin(1)).collect();
        assert_eq!(waiting.len(), WAITS_PER_MESSAGE_MAX_COUNT);
        assert!(begin(2).is_some());
        drop(waiting);
        let of_device: Vec<_> = (0..100).filter_map(begin).collect();
        assert_eq!(of_device.len(), WAITS_PER_DEVICE_MAX_COUNT);
    }
}
