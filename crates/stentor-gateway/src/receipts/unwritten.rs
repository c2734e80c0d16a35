//! Which devices have receipts that are not written yet, and who waits for that.

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
    /// Since when something has waited and nothing was written.
    since: Option<Instant>,
    /// Those who wait until nothing is on its way.
    waiting: Vec<oneshot::Sender<()>>,
}

/// Receipts that were handed to the writer and are not written.
#[derive(Default)]
pub(super) struct UnwrittenReceipts(Mutex<UnwrittenDevices>);

impl UnwrittenReceipts {
    /// Notes that receipts of a device are on their way.
    pub(super) fn add(&self, device: DeviceId) {
        let mut inner = self.lock();
        inner.since.get_or_insert_with(Instant::now);
        inner.devices.entry(device).or_default().count += 1;
    }

    /// Notes that receipts of a device are written, or are never to be.
    pub(super) fn remove(&self, device: DeviceId) {
        let mut inner = self.lock();
        let is_last = inner.devices.get_mut(&device).is_some_and(|of_device| {
            of_device.count = of_device.count.saturating_sub(1);
            of_device.count == 0
        });
        let done = is_last.then(|| inner.devices.remove(&device)).flatten();
        inner.since = (!inner.devices.is_empty()).then(Instant::now);
        let over = if inner.devices.is_empty() { std::mem::take(&mut inner.waiting) } else { Vec::new() };
        drop(inner);
        for tell in done.into_iter().flat_map(|of_device| of_device.waiting).chain(over) {
            let _nobody_waits_any_more = tell.send(());
        }
    }

    /// Waits until nothing of a device is on its way.
    pub(super) async fn none_of(&self, device: DeviceId) {
        let told = self.lock().devices.get_mut(&device).map(|of_device| waiter(&mut of_device.waiting));
        if let Some(told) = told {
            let _without_a_writer_nothing_more_is_written = told.await;
        }
    }

    /// Waits until nothing is on its way.
    pub(super) async fn none(&self) {
        let told = {
            let mut inner = self.lock();
            (!inner.devices.is_empty()).then(|| waiter(&mut inner.waiting))
        };
        if let Some(told) = told {
            let _without_a_writer_nothing_more_is_written = told.await;
        }
    }

    /// Returns for how long something has waited and nothing was written.
    pub(super) fn stalled_for(&self) -> Duration {
        self.lock().since.map(|since| since.elapsed()).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, UnwrittenDevices> {
        self.0.lock()
    }
}

fn waiter(waiting: &mut Vec<oneshot::Sender<()>>) -> oneshot::Receiver<()> {
    // Whoever was cut off waits no more.
    waiting.retain(|tell| !tell.is_closed());
    let (tell, told) = oneshot::channel();
    waiting.push(tell);
    told
}
