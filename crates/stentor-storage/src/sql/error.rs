//! Errors of statements, and of the code that executes them.

use stentor_core::ledger::TooFew;
use stentor_core::ports::store::StoreError;

use crate::{postgres, sqlite};

/// An error with a meaning for the caller, or an error of an engine, which gets its meaning later.
#[derive(Debug)]
pub enum SqlError {
    Store(StoreError),
    Sqlite(rusqlite::Error),
    Postgres(tokio_postgres::Error),
}

/// The result of a statement, or of a job that consists of statements.
pub(crate) type Done<T> = Result<T, SqlError>;

impl SqlError {
    /// Returns true if the engine cannot read or write now.
    pub(crate) fn is_unavailable(&self) -> bool {
        self.is(|error| matches!(error, StoreError::Unavailable(_) | StoreError::Unreadable(_)))
    }

    /// Returns true if something is in use already, or is not as a request requires.
    pub(crate) fn is_conflict(&self) -> bool {
        self.is(|error| matches!(error, StoreError::Conflict(_)))
    }

    /// Returns true if a row is damaged.
    pub(crate) fn is_damage(&self) -> bool {
        self.is(|error| matches!(error, StoreError::Damaged(_)))
    }

    fn is(&self, meant: impl Fn(&StoreError) -> bool) -> bool {
        match self {
            Self::Store(error) => meant(error),
            Self::Sqlite(error) => meant(&sqlite::meaning(error)),
            Self::Postgres(error) => meant(&postgres::meaning(error)),
        }
    }
}

impl std::fmt::Display for SqlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Sqlite(error) => error.fmt(f),
            Self::Postgres(error) => f.write_str(&postgres::words(error)),
        }
    }
}

impl From<StoreError> for SqlError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<TooFew> for SqlError {
    fn from(too_few: TooFew) -> Self {
        damaged(&too_few.to_string())
    }
}

impl From<rusqlite::Error> for SqlError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<SqlError> for StoreError {
    fn from(error: SqlError) -> Self {
        match error {
            SqlError::Store(error) => error,
            SqlError::Sqlite(error) => sqlite::meaning(&error),
            SqlError::Postgres(error) => postgres::meaning(&error),
        }
    }
}

/// Returns the error for a damaged row.
pub(crate) fn damaged(what: &str) -> SqlError {
    SqlError::Store(StoreError::Damaged(what.to_owned()))
}

/// Returns the error for a row that does not exist.
pub(crate) const fn missing(what: &'static str) -> SqlError {
    SqlError::Store(StoreError::NotFound(what))
}

/// Returns the error for a change that the state of a row forbids.
pub(crate) fn conflict(why: impl Into<String>) -> SqlError {
    SqlError::Store(StoreError::Conflict(why.into()))
}

/// Returns the error for an engine that cannot read or write now.
pub(crate) fn unavailable(why: impl Into<String>) -> SqlError {
    SqlError::Store(StoreError::Unavailable(why.into()))
}

/// Turns `NotFound` into `None`.
pub(crate) fn unless_missing<T>(done: Done<T>) -> Done<Option<T>> {
    match done {
        Err(SqlError::Store(StoreError::NotFound(_))) => Ok(None),
        done => done.map(Some),
    }
}

/// Fails if no row was changed.
pub(crate) fn found(changed: usize, what: &'static str) -> Done<()> {
    if changed == 0 { Err(missing(what)) } else { Ok(()) }
}

/// Fails if an `INSERT … ON CONFLICT DO NOTHING` inserted no row.
pub(crate) fn unless_repeat(inserted: usize, why: &str) -> Done<()> {
    if inserted == 0 { Err(conflict(why)) } else { Ok(()) }
}
