//! Meanings of SQLite's errors.

use rusqlite::{Error, ErrorCode};
use stentor_core::ports::store::StoreError;

use super::codes;
use crate::failure::FailureMeaning;
use crate::sql::{SqlError, conflict};

/// Returns true if another connection holds the file for now.
pub(super) fn is_busy(error: &SqlError) -> bool {
    matches!(error, SqlError::Sqlite(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy))
}

/// Returns true if SQLite refused because a row with this identity exists.
pub(super) fn is_repeat(error: &Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}

/// Turns a refused repeat into a conflict.
pub(super) fn repeat(error: SqlError, why: &str) -> SqlError {
    match error {
        SqlError::Sqlite(error) if is_repeat(&error) => conflict(why),
        other => other,
    }
}

fn failure(error: &Error) -> FailureMeaning {
    match error {
        // A value is of another kind than its column.
        Error::InvalidColumnType(..)
        | Error::Utf8Error(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::FromSqlConversionFailure(..) => FailureMeaning::Damaged,
        _ => error
            .sqlite_error()
            .map_or(FailureMeaning::Retry, |sqlite_error| codes::meaning(sqlite_error.extended_code)),
    }
}

/// Returns the meaning of an error for the caller.
pub(crate) fn meaning(error: &Error) -> StoreError {
    match failure(error) {
        FailureMeaning::Damaged => StoreError::Damaged(error.to_string()),
        FailureMeaning::Unreadable => StoreError::Unreadable(error.to_string()),
        _ => StoreError::Unavailable(error.to_string()),
    }
}
