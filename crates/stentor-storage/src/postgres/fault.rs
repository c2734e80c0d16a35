//! What can go wrong between a job and its answer.

use postgres::Error;
use postgres::error::SqlState;
use stentor_core::ledger::TooFew;
use stentor_core::ports::store::StoreError;

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
        let meant = |error: &StoreError| matches!(error, StoreError::Unavailable(_));
        match self {
            Self::Store(error) => meant(error),
            Self::Engine(error) => meant(&meaning(error)),
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
    conflict("a text with a NUL cannot be kept")
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

/// Returns whether the server ended a transaction because of another one: the same work may do well a moment later.
pub(super) fn is_collision(error: &Error) -> bool {
    error.code().is_some_and(|code| {
        [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(code)
    })
}

/// Returns whether the connection is lost, or the server told that it ends it.
pub(super) fn is_loss(error: &Error) -> bool {
    let Some(code) = error.code() else { return error.is_closed() || is_transport(error) };
    let ends = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ];
    ends.contains(code) || code.code().starts_with("08")
}

fn is_transport(error: &Error) -> bool {
    let source = std::error::Error::source(error);
    source.is_some_and(|source| source.is::<std::io::Error>())
}

/// Returns an engine's failure a meaning.
pub(super) fn meaning(error: &Error) -> StoreError {
    // Classes of SQLSTATE: 22 is a value, 23 a constraint, XX what the server itself says of its files.
    let class = error.code().map(|code| &code.code()[..2]);
    match class {
        Some("22" | "23" | "XX") => StoreError::Damaged(words(error)),
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
