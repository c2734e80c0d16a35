//! Sequences of increasing numbers. They are rows: if a transaction is rolled back, its numbers are issued again. Others see a number only
//! after all smaller ones, because the row is locked until the transaction ends.

use stentor_core::id::DeviceId;

use crate::sql::{Connection, Done, damaged, int, number, one, params, run};

/// Low bits of a device key: the device's id.
pub(crate) const DEVICE_BITS: u32 = 40;
/// The largest number of a device.
pub(crate) const DEVICE_MAX: u64 = (1 << DEVICE_BITS) - 1;
/// Keys stay below 2^63.
pub(crate) const FLEET_MAX: u64 = (1 << 22) - 1;

/// Returns the last assigned device number: every device up to it is visible to all, or gone.
pub(crate) fn last_device(connection: &Connection) -> Done<DeviceId> {
    last(connection, "device").map(DeviceId::from_raw)
}

/// Returns the last number given out.
pub(crate) fn last(connection: &Connection, name: &str) -> Done<u64> {
    let sql = "SELECT value FROM sequences WHERE name = ?1";
    one(connection, sql, [name], |row| number(row, 0))?.ok_or_else(|| damaged("a sequence is missing"))
}

/// Returns the next number, which is unique.
pub(crate) fn next(connection: &Connection, name: &str) -> Done<u64> {
    take(connection, name, 1)
}

/// Returns the last of the next `count` numbers. Other transactions that take numbers wait until this one ends.
pub(crate) fn take(connection: &Connection, name: &str, count: u64) -> Done<u64> {
    let sql = "UPDATE sequences SET value = value + ?2 WHERE name = ?1 RETURNING value";
    let value = one(connection, sql, params![name, int(count)], |row| number(row, 0))?;
    value.ok_or_else(|| damaged("a sequence is missing"))
}

/// Writes something, however little: a number of its own that means nothing.
pub(crate) fn probe(connection: &Connection) -> Done<()> {
    let sql = "INSERT INTO sequences (name, value) VALUES ('probe', 1)
        ON CONFLICT (name) DO UPDATE SET value = sequences.value + 1";
    run(connection, sql, ()).map(drop)
}

/// Records that numbers up to this one are or were in use.
pub(crate) fn advance(connection: &Connection, name: &str, value: u64) -> Done<()> {
    let sql = "UPDATE sequences SET value = ?2 WHERE name = ?1 AND value < ?2";
    run(connection, sql, params![name, int(value)]).map(drop)
}
