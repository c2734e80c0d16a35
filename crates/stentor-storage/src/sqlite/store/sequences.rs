//! Numbers that only grow.

use rusqlite::{Connection, params};
use stentor_core::id::DeviceId;

use crate::sqlite::fault::{Done, damaged};
use crate::sqlite::query::{one, run};
use crate::sqlite::row::{int, number};

/// Gives the last device given out.
pub(super) fn last_device(connection: &Connection) -> Done<DeviceId> {
    last(connection, "device").map(DeviceId::from_raw)
}

/// Gives the last number given out.
pub(super) fn last(connection: &Connection, name: &str) -> Done<u64> {
    let sql = "SELECT value FROM sequences WHERE name = ?1";
    let value = one(connection, sql, [name], |row| number(row, 0))?;
    value.ok_or_else(|| damaged("a sequence is missing"))
}

/// Writes something, however little: a number of its own that means nothing.
pub(super) fn probe(connection: &Connection) -> Done<()> {
    let sql =
        "INSERT INTO sequences (name, value) VALUES ('probe', 1) ON CONFLICT DO UPDATE SET value = value + 1";
    run(connection, sql, []).map(drop)
}

/// Says that numbers up to this one are in use, now or once.
pub(super) fn advance(connection: &Connection, name: &str, value: u64) -> Done<()> {
    let sql = "UPDATE sequences SET value = max(value, ?2) WHERE name = ?1";
    run(connection, sql, params![name, int(value)]).map(drop)
}
