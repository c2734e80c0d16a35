//! The composition of a server: the configuration chooses the engines, and the server runs over their ports.
//!
//! This crate alone knows both the server and the storage. Backups, copies, migrations and the keys that seal credentials are
//! here too, because each of them works on an engine by its name.
#![forbid(unsafe_code)]

mod backup;
pub mod config;
mod engines;
mod nats;
mod sealing;

use std::sync::Arc;

use stentor_core::ports::clock::Clock;
use stentor_server::app::{AppError, BuiltServer};
use stentor_server::clock::ServerClock;
use stentor_server::config::Config;

pub use backup::{BackupFile, BackupManifest, back_up, check_backup, restore};
pub use engines::{
    CopyStep, Depth, Inspection, PostgresInspection, SchemaChange, SchemaGoal, StoreCopy, StorePlace,
    TableSum, UnkeepableRows, copy_store, count_rows, inspect, inspect_database, migrate, queue_file,
    store_file, store_place,
};
pub use sealing::{Rotation, Sealing, rotate};

/// Builds the server that a configuration describes. It does not serve yet.
pub async fn build(config: Config) -> Result<BuiltServer, AppError> {
    build_with(config, Arc::new(ServerClock::default())).await
}

/// Builds a server that reads its time from the given clock.
pub async fn build_with(config: Config, clock: Arc<dyn Clock>) -> Result<BuiltServer, AppError> {
    BuiltServer::build(config, clock, engines::open).await
}
