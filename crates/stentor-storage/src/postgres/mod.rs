//! The Store and Queue ports on PostgreSQL 15 and newer, for installations that have outgrown one file. The queue needs no other server.
//!
//! The rules of a campaign's life are core's. They are called inside transactions, on threads of the engine's own. Several
//! servers may use one database; its clock decides which of them are alive.

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
