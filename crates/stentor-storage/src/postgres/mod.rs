//! The Store and Queue ports on PostgreSQL 15 and newer: the ledger of a team that has outgrown one file, and the transport of one
//! that runs no other server.
//!
//! The rules of a campaign's life are core's and are called inside transactions, on threads of the engine's own. Several
//! servers may use one database; who of them is alive is told by the database's clock.

mod access;
mod address;
mod connection;
mod copy_rows;
mod damage_log;
mod engine;
mod fault;
mod incarnation;
mod inspection;
mod last_writes;
mod listener;
mod migrations;
mod origin;
mod query;
mod queue;
mod readers;
mod row;
mod session;
mod settings;
mod sqlstate;
mod start;
mod store;
mod tls;
mod transactor;
mod value;
mod writer;

pub use address::PostgresAddress;
pub(crate) use fault::{meaning, words};
pub use inspection::{PostgresInspection, inspect};
pub use queue::PostgresQueue;
pub use settings::PostgresSettings;
pub(crate) use store::{PostgresSide, migrate};
pub use store::{PostgresStore, sealed_under};
