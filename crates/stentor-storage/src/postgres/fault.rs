//! Meanings of PostgreSQL's errors.

use std::time::Instant;

use stentor_core::ports::store::StoreError;
use stentor_core::repetition::RepeatedWord;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity};

use super::sqlstate;
use crate::failure::FailureMeaning;
use crate::sql::{SqlError, conflict, unavailable};
use crate::texts::NUL_REFUSED;

/// Limits the log entries about statements that the database refuses.
static MISUSES: RepeatedWord = RepeatedWord::new();

/// Returns true if only an operator can resolve the failure.
pub(super) fn is_refusal(error: &SqlError) -> bool {
    match error {
        SqlError::Store(error) => !matches!(error, StoreError::Unavailable(_) | StoreError::Unreadable(_)),
        SqlError::Postgres(error) => {
            matches!(failure(error), FailureMeaning::Refused | FailureMeaning::Misused)
        }
        SqlError::Sqlite(_) => false,
    }
}

/// Returns true if no server answers or the network fails.
pub(super) fn is_nobody(error: &SqlError) -> bool {
    matches!(error, SqlError::Postgres(error) if error.as_db_error().is_none())
}

/// Returns the error for a text with U+0000, which PostgreSQL cannot store.
pub(super) fn nul() -> SqlError {
    conflict(NUL_REFUSED)
}

/// Returns why a file of certificates cannot be used.
pub(super) fn refused_file(path: &std::path::Path, why: &impl std::fmt::Display) -> SqlError {
    unavailable(format!("the certificates of {}: {why}", path.display()))
}

/// Returns the meaning of an engine's failure. Damage needs proof by the row: a value that does not fit, or a constraint with the server's
/// name of the table. An error raised by a foreign trigger or function proves nothing about our rows, with any code.
pub(super) fn failure(error: &Error) -> FailureMeaning {
    let Some(db_error) = error.as_db_error() else { return failure_on_the_way(error) };
    let ends_session = matches!(db_error.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
    match sqlstate::meaning(db_error.code().code()) {
        FailureMeaning::Damaged if ends_session => FailureMeaning::Lost,
        FailureMeaning::Damaged if is_foreign(db_error) => FailureMeaning::Retry,
        FailureMeaning::Damaged if db_error.code().code().starts_with("23") && db_error.table().is_none() => {
            FailureMeaning::Retry
        }
        FailureMeaning::Retry | FailureMeaning::Conflict | FailureMeaning::Misused if ends_session => {
            FailureMeaning::Lost
        }
        meaning => meaning,
    }
}

/// Returns true if the error was raised inside a procedural language: none of our statements uses one.
fn is_foreign(db_error: &DbError) -> bool {
    db_error.where_().is_some_and(|place| place.contains("PL/"))
        || db_error.routine().is_some_and(|routine| routine.starts_with("exec_stmt"))
}

fn failure_on_the_way(error: &Error) -> FailureMeaning {
    let source = std::error::Error::source(error);
    if error.is_closed() || source.is_some_and(|source| source.is::<std::io::Error>()) {
        return FailureMeaning::Lost;
    }
    match source {
        // A value that was read, and is too large for the column that it goes to.
        Some(source) if source.is::<std::num::TryFromIntError>() => FailureMeaning::Damaged,
        _ => FailureMeaning::Retry,
    }
}

/// Returns true if the server ended a transaction because of another one: the same work may succeed a moment later.
pub(super) fn is_collision(error: &Error) -> bool {
    failure(error) == FailureMeaning::Conflict
}

/// Returns true if the connection is lost, or the server has announced its end.
pub(super) fn is_loss(error: &Error) -> bool {
    failure(error) == FailureMeaning::Lost
}

/// Returns the meaning of an error for the caller.
pub(crate) fn meaning(error: &Error) -> StoreError {
    match failure(error) {
        FailureMeaning::Damaged => StoreError::Damaged(words(error)),
        FailureMeaning::Unreadable => StoreError::Unreadable(words(error)),
        FailureMeaning::Misused => {
            if MISUSES.may_say(Instant::now()).is_some() {
                tracing::error!(error = words(error), "the database refuses a statement: please report it");
            }
            StoreError::Unavailable(words(error))
        }
        _ => StoreError::Unavailable(words(error)),
    }
}

/// Returns the server's error message without its details, which contain values of rows.
pub(crate) fn words(error: &Error) -> String {
    match error.as_db_error() {
        Some(db_error) => format!("PostgreSQL says {}: {}", db_error.code().code(), db_error.message()),
        None => {
            let mut words = error.to_string();
            let mut source = std::error::Error::source(error);
            while let Some(next) = source {
                words = format!("{words}: {next}");
                source = next.source();
            }
            words
        }
    }
}
