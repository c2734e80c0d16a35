//! Store and queue by the configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stentor_core::ports::clock::Clock;
use stentor_core::ports::queue::Queue;
use stentor_core::ports::store::Store;
use stentor_server::app::{AppError, Engines};
use stentor_server::config::{Config, Engine, QueueEngine};
pub use stentor_storage::postgres::{PostgresInspection, inspect as inspect_database};
use stentor_storage::postgres::{PostgresQueue, PostgresSettings, PostgresStore};
pub use stentor_storage::schema::{SchemaChange, SchemaGoal};
pub use stentor_storage::sqlite::{Depth, Inspection, inspect};
use stentor_storage::sqlite::{SqliteQueue, SqliteSettings, SqliteStore};
pub use stentor_storage::store_copy::{CopyStep, StoreCopy, TableSum, UnkeepableRows, copy_store};
pub use stentor_storage::store_place::{StorePlace, migrate};

use crate::config::store_address;
use crate::nats;

const STORE_FILE: &str = "stentor.db";
const QUEUE_FILE: &str = "queue.db";

/// Names the store's file in a data directory, for `inspect`.
#[must_use]
pub fn store_file(data_dir: &Path) -> PathBuf {
    data_dir.join(STORE_FILE)
}

/// Counts the rows of all tables of the store's file in a data directory.
pub fn count_rows(data_dir: &Path) -> Result<u64, AppError> {
    stentor_storage::sqlite::count_rows(store_file(data_dir)).map_err(|error| engine("the store", &error))
}

/// Names the queue's file in a data directory, for `inspect`.
#[must_use]
pub fn queue_file(data_dir: &Path) -> PathBuf {
    data_dir.join(QUEUE_FILE)
}

/// Returns the place of a configuration's store. Fails if the store is in memory.
pub fn store_place(config: &Config) -> Result<StorePlace, AppError> {
    match config.store.engine {
        Engine::Sqlite => Ok(StorePlace::Sqlite(store_file(&config.data_dir))),
        Engine::Postgres => {
            let address = store_address(&config.store).map_err(|error| engine("the store", &error))?;
            Ok(StorePlace::Postgres(Box::new(address)))
        }
        Engine::Memory => Err(engine("the store", &"it ends with the process")),
    }
}

/// Opens the engines that the configuration names.
pub(crate) fn open(config: &Config, clock: &Arc<dyn Clock>) -> Result<Engines, AppError> {
    Ok(Engines { store: store(config)?, queue: queue(config, clock)? })
}

/// Opens the store.
fn store(config: &Config) -> Result<Arc<dyn Store>, AppError> {
    match config.store.engine {
        Engine::Memory => {
            Ok(Arc::new(SqliteStore::temporary().map_err(|error| engine("the store", &error))?))
        }
        Engine::Sqlite => {
            let (path, keys) = (store_file(&config.data_dir), crate::sealing::keys(config)?);
            let opened = SqliteStore::open_sealed(path, SqliteSettings::store(), keys);
            Ok(Arc::new(opened.map_err(|error| engine("the store", &error))?))
        }
        Engine::Postgres => {
            let address = store_address(&config.store).map_err(|error| engine("the store", &error))?;
            let keys = crate::sealing::keys(config)?;
            let opened = PostgresStore::open_sealed(&address, &PostgresSettings::default(), keys);
            let opened = opened.map_err(|error| engine("the store", &error))?;
            tracing::info!(store = %address.shown(), "the store is a PostgreSQL database");
            Ok(Arc::new(opened))
        }
    }
}

/// Opens the queue.
fn queue(config: &Config, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Queue>, AppError> {
    match config.queue.engine {
        QueueEngine::Memory => {
            Ok(Arc::new(SqliteQueue::temporary().map_err(|error| engine("the queue", &error))?))
        }
        QueueEngine::Sqlite => {
            let opened = SqliteQueue::open(queue_file(&config.data_dir), SqliteSettings::queue());
            Ok(Arc::new(opened.map_err(|error| engine("the queue", &error))?))
        }
        QueueEngine::Postgres => {
            let address = store_address(&config.store).map_err(|error| engine("the queue", &error))?;
            let opened = PostgresQueue::open(&address, &PostgresSettings::default());
            Ok(Arc::new(opened.map_err(|error| engine("the queue", &error))?))
        }
        QueueEngine::Nats => nats::queue(config, clock),
    }
}

pub(crate) fn engine(what: &'static str, cause: &dyn std::fmt::Display) -> AppError {
    AppError::Engine { what, cause: cause.to_string() }
}
