//! Turns for what reads and then changes something of one device.

use stentor_core::id::DeviceId;
use tokio::sync::{Mutex, MutexGuard};

/// Devices that may have to wait for each other: as many as share a place, of so many.
const PLACES_COUNT: usize = 64;

/// Lets the connections of a device have their turns, one after the other; other devices go on beside it.
pub(crate) struct DeviceTurns(Vec<Mutex<()>>);

impl DeviceTurns {
    pub(crate) fn new() -> Self {
        Self((0..PLACES_COUNT).map(|_| Mutex::default()).collect())
    }

    /// Waits for the turn of a device, which ends when what this returns is dropped.
    pub(crate) async fn turn(&self, device: DeviceId) -> MutexGuard<'_, ()> {
        self.0[device.raw() as usize % PLACES_COUNT].lock().await
    }
}
