//! Places for connections, of which a process has as many as it may open files: where there are more devices, those that have what they
//! wanted leave theirs to those that wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places, and how many wait for one.
#[derive(Debug)]
pub(super) struct ConnectionPlaces {
    places: Arc<Semaphore>,
    wanted: AtomicU64,
    /// Whether there are fewer places than devices.
    pub(super) are_scarce: bool,
}

impl ConnectionPlaces {
    pub(super) fn new(count: usize, devices: usize) -> Self {
        let places = Arc::new(Semaphore::new(count));
        Self { places, wanted: AtomicU64::default(), are_scarce: count < devices }
    }

    /// Waits for a place; `None` when there will be none.
    pub(super) async fn take(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(place);
        }
        self.wanted.fetch_add(1, Ordering::Relaxed);
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Returns whether whoever asks is to leave its place to one that waits.
    pub(super) fn is_to_leave(&self) -> bool {
        let one_less = |wanted: u64| wanted.checked_sub(1);
        self.wanted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }
}
