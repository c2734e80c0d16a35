//! Numbers that only grow. They are rows, not the server's sequences: what is taken back is given again, and a number is seen by
//! others only after all smaller ones, because its row is held until the transaction ends.

use stentor_core::id::DeviceId;

use crate::postgres::engine::{Connection, params};
use crate::postgres::fault::{Done, damaged};
use crate::postgres::query::{one, run};
use crate::postgres::row::{int, number};

/// Low bits of a device key: the device's id.
pub(super) const DEVICE_BITS: u32 = 40;
/// The largest number of a device.
pub(super) const DEVICE_MAX: u64 = (1 << DEVICE_BITS) - 1;
/// Keys stay below 2^63.
pub(super) const FLEET_MAX: u64 = (1 << 22) - 1;

/// Returns the last device given out: every one up to it is there for everybody, or gone.
pub(super) fn last_device(connection: &Connection) -> Done<DeviceId> {
    let sql = "SELECT value FROM sequences WHERE name = 'device'";
    let value = one(connection, sql, (), |row| number(row, 0))?;
    value.map(DeviceId::from_raw).ok_or_else(|| damaged("a sequence is missing"))
}

/// Returns the next number, which is nobody else's.
pub(super) fn next(connection: &Connection, name: &str) -> Done<u64> {
    take(connection, name, 1)
}

/// Returns the last of so many next numbers. Who asks after that waits until this transaction ends.
pub(super) fn take(connection: &Connection, name: &str, count: u64) -> Done<u64> {
    let sql = "UPDATE sequences SET value = value + $2 WHERE name = $1 RETURNING value";
    let value = one(connection, sql, params![name, int(count)], |row| number(row, 0))?;
    value.ok_or_else(|| damaged("a sequence is missing"))
}

/// Writes something, however little: a number of its own that means nothing.
pub(super) fn probe(connection: &Connection) -> Done<()> {
    take(connection, "probe", 1).map(drop)
}

/// Notes that numbers up to this one are in use, now or once.
pub(super) fn advance(connection: &Connection, name: &str, value: u64) -> Done<()> {
    let sql = "UPDATE sequences SET value = $2 WHERE name = $1 AND value < $2";
    run(connection, sql, params![name, int(value)]).map(drop)
}
