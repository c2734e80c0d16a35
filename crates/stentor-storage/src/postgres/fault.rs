//! What can go wrong between a job and its answer.

use std::time::Instant;

use stentor_core::ledger::TooFew;
use stentor_core::ports::store::StoreError;
use stentor_core::repetition::RepeatedWord;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity};

use super::sqlstate;
use crate::failure::FailureMeaning;

/// Statements that the database refuses are named this often.
static MISUSES: RepeatedWord = RepeatedWord::new();

use crate::texts::NUL_REFUSED;

/// A meaning for the caller, or a failure of the engine that is still to be given one.
#[derive(Debug)]
pub(super) enum PostgresError {
    Store(StoreError),
    Engine(Error),
}

/// What a job gives.
pub(super) type Done<T> = Result<T, PostgresError>;

impl PostgresError {
    /// Returns whether the engine cannot read or write now.
    pub(super) fn is_unavailable(&self) -> bool {
        let meant =
            |error: &StoreError| matches!(error, StoreError::Unavailable(_) | StoreError::Unreadable(_));
        match self {
            Self::Store(error) => meant(error),
            Self::Engine(error) => meant(&meaning(error)),
        }
    }

    /// Returns whether nothing helps until an operator changes something.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Store(error) => !matches!(error, StoreError::Unavailable(_) | StoreError::Unreadable(_)),
            Self::Engine(error) => {
                matches!(failure(error), FailureMeaning::Refused | FailureMeaning::Misused)
            }
        }
    }

    /// Returns whether there is nobody who answers: no server, or no way to it.
    pub(super) fn is_nobody(&self) -> bool {
        match self {
            Self::Store(_) => false,
            Self::Engine(error) => error.as_db_error().is_none(),
        }
    }

    /// Returns whether what was read makes no sense.
    pub(super) fn is_damage(&self) -> bool {
        let meant = |error: &StoreError| matches!(error, StoreError::Damaged(_));
        match self {
            Self::Store(error) => meant(error),
            Self::Engine(error) => meant(&meaning(error)),
        }
    }
}

impl std::fmt::Display for PostgresError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Engine(error) => f.write_str(&words(error)),
        }
    }
}

impl From<StoreError> for PostgresError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<TooFew> for PostgresError {
    fn from(too_few: TooFew) -> Self {
        damaged(&too_few.to_string())
    }
}

impl From<PostgresError> for StoreError {
    fn from(fault: PostgresError) -> Self {
        match fault {
            PostgresError::Store(error) => error,
            PostgresError::Engine(error) => meaning(&error),
        }
    }
}

/// Returns that what was read makes no sense.
pub(super) fn damaged(what: &str) -> PostgresError {
    PostgresError::Store(StoreError::Damaged(what.to_owned()))
}

/// Returns that there is no such thing.
pub(super) const fn missing(what: &'static str) -> PostgresError {
    PostgresError::Store(StoreError::NotFound(what))
}

/// Returns what was looked for, or nothing where there is no such thing.
pub(super) fn unless_missing<T>(done: Done<T>) -> Done<Option<T>> {
    match done {
        Err(PostgresError::Store(StoreError::NotFound(_))) => Ok(None),
        done => done.map(Some),
    }
}

/// Returns that the state of things forbids it.
pub(super) fn conflict(why: impl Into<String>) -> PostgresError {
    PostgresError::Store(StoreError::Conflict(why.into()))
}

/// Returns that a text holds what no text of PostgreSQL can hold.
pub(super) fn nul() -> PostgresError {
    conflict(NUL_REFUSED)
}

/// Returns why a file of certificates cannot be used.
pub(super) fn refused_file(path: &std::path::Path, why: &impl std::fmt::Display) -> PostgresError {
    unavailable(format!("the certificates of {}: {why}", path.display()))
}

/// Returns that the engine cannot do it now.
pub(super) fn unavailable(why: impl Into<String>) -> PostgresError {
    PostgresError::Store(StoreError::Unavailable(why.into()))
}

/// Fails where nothing was there to be changed.
pub(super) fn found(changed: usize, what: &'static str) -> Done<()> {
    if changed == 0 { Err(missing(what)) } else { Ok(()) }
}

/// Fails where a row with this identity was there before.
pub(super) fn unless_repeat(inserted: usize, why: &str) -> Done<()> {
    if inserted == 0 { Err(conflict(why)) } else { Ok(()) }
}

/// Returns what a failure of the engine means. Damage is what the row proves: a value that does not fit, or a constraint of which the server
/// names the table. What a trigger or a function of somebody else raises says nothing of our rows, whatever code it gives.
pub(super) fn failure(error: &Error) -> FailureMeaning {
    let Some(told) = error.as_db_error() else { return failure_on_the_way(error) };
    let ends_session = matches!(told.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
    match sqlstate::meaning(told.code().code()) {
        FailureMeaning::Damaged if ends_session => FailureMeaning::Lost,
        FailureMeaning::Damaged if is_foreign(told) => FailureMeaning::Retry,
        FailureMeaning::Damaged if told.code().code().starts_with("23") && told.table().is_none() => {
            FailureMeaning::Retry
        }
        FailureMeaning::Retry | FailureMeaning::Conflict | FailureMeaning::Misused if ends_session => {
            FailureMeaning::Lost
        }
        meaning => meaning,
    }
}

/// Returns whether it was raised inside a procedural language: none of our statements uses one.
fn is_foreign(told: &DbError) -> bool {
    told.where_().is_some_and(|place| place.contains("PL/"))
        || told.routine().is_some_and(|routine| routine.starts_with("exec_stmt"))
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

/// Returns whether the server ended a transaction because of another one: the same work may do well a moment later.
pub(super) fn is_collision(error: &Error) -> bool {
    failure(error) == FailureMeaning::Conflict
}

/// Returns whether the connection is lost, or the server told that it ends it.
pub(super) fn is_loss(error: &Error) -> bool {
    failure(error) == FailureMeaning::Lost
}

/// Returns an engine's failure a meaning for the caller.
pub(super) fn meaning(error: &Error) -> StoreError {
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

/// Returns what the server said, without values of rows: its details hold them.
pub(super) fn words(error: &Error) -> String {
    match error.as_db_error() {
        Some(told) => format!("PostgreSQL says {}: {}", told.code().code(), told.message()),
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
