//! SQL that is the same for SQLite and PostgreSQL: statements, values, rows, errors.
//!
//! Statements have numbered parameters (`?1`); PostgreSQL's connection turns them into its own (`$1`) when it prepares a statement. An
//! engine implements [`Sql`] for its connection. Everything here works through `dyn Sql`, so that it is compiled once.

mod acceptance;
mod connection;
mod damage;
pub(crate) mod dialect;
mod engine;
mod error;
mod ledger_engine;
mod ledger_rows;
mod parts;
mod portion;
mod query;
mod row;
pub(crate) mod store;
mod value;

pub(crate) use acceptance::{AcceptanceList, AcceptanceWork, AcceptedResult};
pub(crate) use connection::{Connection, Sql};
pub(crate) use damage::{attempt, force, listed, note_damage, readable};
pub(crate) use engine::SqlStore;
pub(crate) use engine::{ReadKind, SqlEngine, WriteKind};
pub(crate) use error::{
    Done, SqlError, conflict, damaged, found, missing, unavailable, unless_missing, unless_repeat,
};
pub(crate) use ledger_engine::{LedgerEngine, Step};
pub(crate) use ledger_rows::shared_ledger_rows;
pub(crate) use parts::{EngineParts, RemovedKind};
#[cfg(test)]
pub(crate) use portion::PORTION_MAX_ROWS;
pub(crate) use portion::Portion;
pub(crate) use query::{all, exists, limit, one, run, some};
pub(crate) use row::{
    Row, SqlRow, code, hash, int, maybe_code, maybe_number, maybe_text, maybe_time, number, text, time,
};
pub(crate) use value::{Params, Value, params};
