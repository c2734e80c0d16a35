//! Connections that read, side by side with the one that writes; each read sees one snapshot.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use stentor_core::ports::store::StoreError;
use tokio::sync::Semaphore;

use super::fault::Done;
use super::file;
use super::settings::SqliteSettings;

/// A bounded pool of reading connections, opened when needed.
pub(super) struct Readers {
    shared: Arc<Shared>,
    places: Arc<Semaphore>,
}

struct Shared {
    path: PathBuf,
    settings: SqliteSettings,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    /// Makes an empty pool.
    pub(super) fn new(path: &Path, settings: &SqliteSettings) -> Self {
        let shared = Shared { path: path.to_owned(), settings: settings.clone(), idle: Mutex::default() };
        let places = Arc::new(Semaphore::new(settings.readers_max_count.max(1)));
        Self { shared: Arc::new(shared), places }
    }

    /// Reads in one snapshot, on a thread where waiting for the disk holds up nobody else.
    pub(super) async fn run<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Done<T> + Send + 'static,
    {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let shared = Arc::clone(&self.shared);
        let reading = tokio::task::spawn_blocking(move || {
            let result = shared.read(work);
            drop(place);
            result
        });
        let result = reading.await.map_err(|error| StoreError::Damaged(format!("a read failed: {error}")))?;
        Ok(result?)
    }
}

impl Shared {
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Done<T>) -> Done<T> {
        let connection = match self.take() {
            Some(connection) => connection,
            None => file::open_reader(&self.path, &self.settings)?,
        };
        let snapshot = connection.unchecked_transaction()?;
        let result = work(&snapshot);
        snapshot.finish()?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        result
    }

    fn take(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}
