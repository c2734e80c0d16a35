//! The ports on SQLite: one file for the ledger, and a disposable one for the queue.

mod bulk;
mod codes;
mod connection;
mod copy;
mod damage;
mod fault;
mod file;
mod inspection;
pub(crate) mod migrations;
mod queue;
mod readers;
mod settings;
mod store;
mod temporary;
mod wal;
mod worker_pool;
mod writer;

pub use copy::copy;
pub(crate) use fault::meaning;
pub use inspection::{Depth, Inspection, count_rows, inspect, sealed_under};
pub use queue::SqliteQueue;
pub use settings::{SqliteSettings, Synchronous};
pub use store::SqliteStore;
pub(crate) use store::{SqliteSide, migrate};
