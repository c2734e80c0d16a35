//! Rows of the queue's file that make no sense: they are removed, and the store's chunks are published again.

use crate::sql::{Done, SqlError, code, exists, number, readable, run};
use rusqlite::Connection;
use stentor_core::chunk::TrafficClass;
use stentor_core::device::ProviderKind;

/// Latest instant that a ticket can name, in milliseconds: the end of the year 9999.
pub(super) const INSTANT_MAX_MS: i64 = 253_402_300_799_999;
/// Largest lease that can have been given out.
const LEASE_MAX: i64 = 1 << 62;

/// Executes work, and repeats it after removing damaged rows if it met one.
pub(super) fn around<T>(connection: &Connection, work: impl Fn(&Connection) -> Done<T>) -> Done<T> {
    match work(connection) {
        Err(fault) if fault.is_damage() => {
            report(&fault);
            mend(connection)?;
            work(connection)
        }
        done => done,
    }
}

fn report(fault: &SqlError) {
    tracing::error!(%fault, "a row of the queue cannot be read: it is removed and filled again from the store");
}

/// Removes invalid rows.
pub(super) fn mend(connection: &Connection) -> Done<()> {
    // Lanes first: the tickets of a removed lane are invalid.
    let removed = lanes(connection)? + tickets(connection)?;
    if removed > 0 {
        tracing::error!(removed, "rows of the queue made no sense: they are filled again from the store");
    }
    counter(connection)
}

fn lanes(connection: &Connection) -> Done<usize> {
    let sql = "SELECT no, app, provider, class FROM lanes";
    let (_, broken) = readable(connection, "lanes", (sql, ()), usize::MAX, |row| {
        number(row, 1)?;
        code(row, 2, ProviderKind::from_code)?;
        code(row, 3, TrafficClass::from_code).map(drop)
    })?;
    for no in &broken {
        run(connection, "DELETE FROM lanes WHERE no = ?1", [no])?;
    }
    Ok(broken.len())
}

fn tickets(connection: &Connection) -> Done<usize> {
    let sql = "DELETE FROM tickets WHERE chunk < 0
        OR typeof(lane) <> 'integer' OR NOT EXISTS (SELECT 1 FROM lanes WHERE no = lane)
        OR typeof(due_at) <> 'integer' OR due_at > ?1
        OR (lease IS NULL) <> (lease_until IS NULL)
        OR lease IS NOT NULL AND (typeof(lease) <> 'integer' OR typeof(lease_until) <> 'integer' OR lease_until > ?1)";
    run(connection, sql, [INSTANT_MAX_MS])
}

/// Repairs a missing or invalid counter of leases: it continues after the last held lease.
fn counter(connection: &Connection) -> Done<()> {
    let sane = "SELECT 1 FROM leases WHERE typeof(last) = 'integer' AND last BETWEEN 0 AND ?1
        AND (SELECT count(*) FROM leases) = 1";
    if exists(connection, sane, [LEASE_MAX])? {
        return Ok(());
    }
    tracing::error!("the queue's counter of leases makes no sense: it goes on after the last that is held");
    run(connection, "DELETE FROM leases", ())?;
    let sql = "INSERT INTO leases (last)
        SELECT coalesce(max(lease), 0) FROM tickets WHERE typeof(lease) = 'integer' AND lease BETWEEN 0 AND ?1";
    run(connection, sql, [LEASE_MAX]).map(drop)
}
