//! Locks per device, for operations that read and then change its data.

use stentor_core::id::DeviceId;
use tokio::sync::{Mutex, MutexGuard};

/// Number of locks. Devices with the same lock wait for each other.
const PLACES_COUNT: usize = 64;

/// Serializes the operations of a device's connections; other devices proceed in parallel.
pub(crate) struct DeviceTurns(Vec<Mutex<()>>);

impl DeviceTurns {
    pub(crate) fn new() -> Self {
        Self((0..PLACES_COUNT).map(|_| Mutex::default()).collect())
    }

    /// Waits for the lock of a device, which is held until the guard is dropped.
    pub(crate) async fn turn(&self, device: DeviceId) -> MutexGuard<'_, ()> {
        self.0[device.raw() as usize % PLACES_COUNT].lock().await
    }
}
