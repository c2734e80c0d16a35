//! Devices with unwritten receipts, and the tasks that wait for them.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use stentor_core::id::DeviceId;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The unwritten receipts of one device.
#[derive(Default)]
struct OfDevice {
    count: usize,
    waiting: Vec<oneshot::Sender<()>>,
}

#[derive(Default)]
struct UnwrittenDevices {
    devices: HashMap<DeviceId, OfDevice>,
    /// Time since which receipts have waited without any being written.
    since: Option<Instant>,
    /// Tasks that wait until nothing is unwritten.
    waiting: Vec<oneshot::Sender<()>>,
}

/// Receipts that were queued and are not written.
#[derive(Default)]
pub(super) struct UnwrittenReceipts(Mutex<UnwrittenDevices>);

impl UnwrittenReceipts {
    /// Records that receipts of a device are queued.
    pub(super) fn add(&self, device: DeviceId) {
        let mut inner = self.lock();
        inner.since.get_or_insert_with(Instant::now);
        inner.devices.entry(device).or_default().count += 1;
    }

    /// Records that receipts of a device are written, or given up.
    pub(super) fn remove(&self, device: DeviceId) {
        let mut inner = self.lock();
        let is_last = inner.devices.get_mut(&device).is_some_and(|of_device| {
            of_device.count = of_device.count.saturating_sub(1);
            of_device.count == 0
        });
        let done = is_last.then(|| inner.devices.remove(&device)).flatten();
        inner.since = (!inner.devices.is_empty()).then(Instant::now);
        let remaining =
            if inner.devices.is_empty() { std::mem::take(&mut inner.waiting) } else { Vec::new() };
        drop(inner);
        for tell in done.into_iter().flat_map(|of_device| of_device.waiting).chain(remaining) {
            let _nobody_waits_any_more = tell.send(());
        }
    }

    /// Waits until a device has no unwritten receipts.
    pub(super) async fn none_of(&self, device: DeviceId) {
        let receiver = self.lock().devices.get_mut(&device).map(|of_device| waiter(&mut of_device.waiting));
        if let Some(receiver) = receiver {
            let _without_a_writer_nothing_more_is_written = receiver.await;
        }
    }

    /// Waits until there are no unwritten receipts.
    pub(super) async fn none(&self) {
        let receiver = {
            let mut inner = self.lock();
            (!inner.devices.is_empty()).then(|| waiter(&mut inner.waiting))
        };
        if let Some(receiver) = receiver {
            let _without_a_writer_nothing_more_is_written = receiver.await;
        }
    }

    /// Returns the time for which receipts have waited without any being written.
    pub(super) fn stalled_for(&self) -> Duration {
        self.lock().since.map(|since| since.elapsed()).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, UnwrittenDevices> {
        self.0.lock()
    }
}

fn waiter(waiting: &mut Vec<oneshot::Sender<()>>) -> oneshot::Receiver<()> {
    // Removes cancelled waiters.
    waiting.retain(|tell| !tell.is_closed());
    let (tell, receiver) = oneshot::channel();
    waiting.push(tell);
    receiver
}
