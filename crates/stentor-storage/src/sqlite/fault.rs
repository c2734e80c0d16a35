//! What can go wrong between a job and its answer.

use rusqlite::{Error, ErrorCode};
use stentor_core::ledger::TooFew;
use stentor_core::ports::store::StoreError;

use super::codes;
use crate::failure::FailureMeaning;

/// A meaning for the caller, or a failure of the engine that is still to be given one.
#[derive(Debug)]
pub(super) enum SqliteError {
    Store(StoreError),
    Engine(Error),
}

impl SqliteError {
    /// Returns whether the engine cannot read or write now, or not this.
    pub(super) fn is_unavailable(&self) -> bool {
        match self {
            Self::Store(error) => is_unavailable(error),
            Self::Engine(error) => is_unavailable(&meaning(error)),
        }
    }

    /// Returns whether somebody else holds the file for now.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self, Self::Engine(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy))
    }

    /// Returns whether what was read makes no sense.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Store(error) => matches!(error, StoreError::Damaged(_)),
            Self::Engine(error) => matches!(meaning(error), StoreError::Damaged(_)),
        }
    }
}

impl std::fmt::Display for SqliteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Engine(error) => error.fmt(f),
        }
    }
}

const fn is_unavailable(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable(_) | StoreError::Unreadable(_))
}

/// What a job gives.
pub(super) type Done<T> = Result<T, SqliteError>;

impl From<StoreError> for SqliteError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<TooFew> for SqliteError {
    fn from(too_few: TooFew) -> Self {
        damaged(&too_few.to_string())
    }
}

impl From<Error> for SqliteError {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl From<SqliteError> for StoreError {
    fn from(fault: SqliteError) -> Self {
        match fault {
            SqliteError::Store(error) => error,
            SqliteError::Engine(error) => meaning(&error),
        }
    }
}

/// Returns that what was read makes no sense.
pub(super) fn damaged(what: &str) -> SqliteError {
    SqliteError::Store(StoreError::Damaged(what.to_owned()))
}

/// Returns that there is no such thing.
pub(super) const fn missing(what: &'static str) -> SqliteError {
    SqliteError::Store(StoreError::NotFound(what))
}

/// Returns what was looked for, or nothing where there is no such thing.
pub(super) fn unless_missing<T>(done: Done<T>) -> Done<Option<T>> {
    match done {
        Err(SqliteError::Store(StoreError::NotFound(_))) => Ok(None),
        done => done.map(Some),
    }
}

/// Returns that the state of things forbids it.
pub(super) fn conflict(why: impl Into<String>) -> SqliteError {
    SqliteError::Store(StoreError::Conflict(why.into()))
}

/// Returns whether the engine refused because a row with this identity exists.
pub(super) fn is_repeat(error: &Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}

/// Returns a refused repeat its meaning.
pub(super) fn repeat(fault: SqliteError, why: &str) -> SqliteError {
    match fault {
        SqliteError::Engine(error) if is_repeat(&error) => conflict(why),
        other => other,
    }
}

/// Fails where nothing was there to be changed.
pub(super) fn found(changed: usize, what: &'static str) -> Done<()> {
    if changed == 0 { Err(missing(what)) } else { Ok(()) }
}

/// Returns what an engine's failure means.
fn failure(error: &Error) -> FailureMeaning {
    match error {
        // What was read is of another kind than its column.
        Error::InvalidColumnType(..)
        | Error::Utf8Error(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::FromSqlConversionFailure(..) => FailureMeaning::Damaged,
        _ => error.sqlite_error().map_or(FailureMeaning::Retry, |told| codes::meaning(told.extended_code)),
    }
}

/// Returns an engine's failure a meaning for the caller.
pub(super) fn meaning(error: &Error) -> StoreError {
    match failure(error) {
        FailureMeaning::Damaged => StoreError::Damaged(error.to_string()),
        FailureMeaning::Unreadable => StoreError::Unreadable(error.to_string()),
        _ => StoreError::Unavailable(error.to_string()),
    }
}
