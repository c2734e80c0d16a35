//! Numbers that only grow.

use rusqlite::{Connection, params};
use stentor_core::id::DeviceId;

use super::fleets::{DEVICE_MAX, FLEET_MAX};
use crate::sqlite::fault::{Done, damaged};
use crate::sqlite::query::{exists, one, run};
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

/// Largest id that a clock can have given out; ids are milliseconds and some bits.
const ID_MAX: u64 = 1 << 62;

/// Puts counters right that are missing or make no sense: everybody needs them, and each goes on after the largest number
/// that is kept.
pub(super) fn mend(connection: &Connection) -> Done<()> {
    let device = format!(
        "SELECT max(coalesce((SELECT max(key & {DEVICE_MAX}) FROM devices), 0),
        coalesce((SELECT max(as_of) FROM campaigns WHERE as_of <= {DEVICE_MAX}), 0),
        coalesce((SELECT max(last) FROM chunks WHERE last <= {DEVICE_MAX}), 0))"
    );
    let of = |table: &str| format!("coalesce((SELECT max(id) FROM {table} WHERE id <= {ID_MAX}), 0)");
    let id = ["apps", "api_keys", "messages", "campaigns", "schedules"].map(of).join(", ");
    let fleet = format!("SELECT coalesce(max(no), 0) FROM fleets WHERE no <= {FLEET_MAX}");
    let counters = [
        ("device", DEVICE_MAX, device),
        ("fleet", FLEET_MAX, fleet),
        ("id", ID_MAX, format!("SELECT max({id})")),
    ];
    for (name, most, largest) in counters {
        let sane = "SELECT 1 FROM sequences WHERE name = ?1 AND typeof(value) = 'integer' AND value BETWEEN 0 AND ?2";
        if exists(connection, sane, params![name, int(most)])? {
            continue;
        }
        tracing::error!(name, "a counter makes no sense: it goes on after the largest number that is kept");
        run(connection, "DELETE FROM sequences WHERE name = ?1", [name])?;
        run(connection, &format!("INSERT INTO sequences (name, value) SELECT ?1, ({largest})"), [name])?;
    }
    Ok(())
}
