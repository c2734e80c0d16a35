//! The location of a store, and the commands that an operator runs on it.

use std::path::PathBuf;
use std::str::FromStr;

use stentor_core::ports::store::StoreError;

use crate::postgres::{self, PostgresAddress, PostgresSide};
use crate::schema::{SchemaChange, SchemaGoal};
use crate::sqlite::{self, SqliteSide};
use crate::transfer::TransferSide;

/// The location of a store.
#[derive(Debug, Clone)]
pub enum StorePlace {
    /// In a file.
    Sqlite(PathBuf),
    /// In a database.
    Postgres(Box<PostgresAddress>),
}

impl FromStr for StorePlace {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        match text.strip_prefix("sqlite:") {
            Some("") | None if !text.starts_with("postgres") => Err(StoreError::Conflict(
                "a store is named by sqlite:PATH, where the path is of its file, or by postgres://USER@HOST/DATABASE".to_owned(),
            )),
            Some(path) => Ok(Self::Sqlite(PathBuf::from(path))),
            None => text.parse().map(|address| Self::Postgres(Box::new(address))),
        }
    }
}

/// Opens a store as one side of a copy.
pub(crate) fn open(place: &StorePlace, is_target: bool) -> Result<Box<dyn TransferSide>, StoreError> {
    Ok(match place {
        StorePlace::Sqlite(path) => Box::new(SqliteSide::open(path, is_target)?),
        StorePlace::Postgres(address) => Box::new(PostgresSide::open(address)?),
    })
}

/// Migrates the schema of a store. Backward, the store must not be in use; forward, a database may be in use by servers that can work with
/// the new schema. Fails with Conflict, and changes nothing, if the step back cannot be undone or would lose data.
pub fn migrate(place: &StorePlace, goal: SchemaGoal) -> Result<SchemaChange, StoreError> {
    match place {
        StorePlace::Sqlite(path) => sqlite::migrate(path, goal),
        StorePlace::Postgres(address) => postgres::migrate(address, goal),
    }
}
