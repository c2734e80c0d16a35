//! The Store port on PostgreSQL 15 and newer: the ledger of a team that has outgrown one file.
//!
//! The rules of a campaign's life are core's and are called inside transactions, on threads of the engine's own. A queue is
//! not here: it stays the local file, which may be thrown away.

mod address;
mod connection;
mod damage;
mod engine;
mod fault;
mod migrations;
mod portion;
mod query;
mod readers;
mod row;
mod settings;
mod store;
mod tls;
mod transactor;
mod value;
mod writer;

pub use address::PostgresAddress;
pub use settings::PostgresSettings;
pub use store::{PostgresStore, sealed_under};
