//! Places for connections, limited by the number of files that a process may open. If there are more devices than places, devices that have
//! their messages leave their places to waiting ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places, and the number of devices waiting for one.
#[derive(Debug)]
pub(super) struct ConnectionPlaces {
    places: Arc<Semaphore>,
    wanted: AtomicU64,
    /// True if there are fewer places than devices.
    pub(super) are_scarce: bool,
}

impl ConnectionPlaces {
    pub(super) fn new(count: usize, devices: usize) -> Self {
        let places = Arc::new(Semaphore::new(count));
        Self { places, wanted: AtomicU64::default(), are_scarce: count < devices }
    }

    /// Waits for a place; `None` if the semaphore is closed.
    pub(super) async fn take(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(place);
        }
        self.wanted.fetch_add(1, Ordering::Relaxed);
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Returns true if the caller must leave its place to a waiting device.
    pub(super) fn is_to_leave(&self) -> bool {
        let one_less = |wanted: u64| wanted.checked_sub(1);
        self.wanted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }
}
