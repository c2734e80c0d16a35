//! Checks of a database before its use: a connection is free, and a session belongs to one client.

use std::time::{Duration, Instant};

use super::access::DatabaseAccess;
use super::connection::PostgresConnection as Connection;
use super::fault::{is_nobody, is_refusal};
use crate::sql::{Done, SqlError, conflict, unavailable};

/// The pause before the next attempt to start.
const PAUSE: Duration = Duration::from_secs(2);

/// Repeats work that a start needs while the server runs but has no free connection. Fails at once if there is no server, or if only an
/// operator can resolve the failure.
pub(super) fn insist_on_start<T>(patience: Duration, mut work: impl FnMut() -> Done<T>) -> Done<T> {
    let until = Instant::now() + patience;
    loop {
        match work() {
            Err(fault) if !is_refusal(&fault) && !is_nobody(&fault) && Instant::now() < until => {
                tracing::warn!(%fault, "the database takes no further connection yet: the start waits for it");
                std::thread::sleep(PAUSE.min(until.saturating_duration_since(Instant::now())));
            }
            done => return done,
        }
    }
}

/// Refuses (Conflict) a pooler that shares a session between several clients in turn: their prepared statements, listened channels and
/// session settings would mix.
pub(super) fn refuse_shared_sessions(connection: &Connection, access: &DatabaseAccess) -> Done<()> {
    let first = backend_of(connection)?;
    // It gets a session of its own; if sessions are shared, probably that of the first connection.
    let other = Connection::open(access, access.patience)?;
    other.batch("BEGIN")?;
    let others = backend_of(&other)?;
    let after = backend_of(connection)?;
    other.batch("ROLLBACK")?;
    if first == others || first != after {
        return Err(shared());
    }
    Ok(())
}

fn backend_of(connection: &Connection) -> Done<String> {
    let number = connection.ask_now("SELECT pg_backend_pid()")?;
    number.ok_or_else(|| unavailable("a session without a number"))
}

fn shared() -> SqlError {
    conflict(
        "store.url leads to a pooler that shares sessions by transaction or statement (PgBouncer: pool_mode), which LISTEN, prepared \
         statements and session settings do not survive: set pool_mode = session for this database, or name PostgreSQL itself",
    )
}
