//! Leftovers: rows of removed things that no caller sees any more. They are deleted a few per transaction, also after restarts.

mod app;

use crate::postgres::engine::Connection;
use crate::sql::{
    Done, Portion, RemovedKind, Row, all, attempt, code, exists, limit, note_damage, params, readable, run,
};

/// Rows that one statement removes.
const AT_ONCE_MAX_COUNT: usize = 1_024;

/// A thing that is removed and of which rows are left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leftover {
    kind: RemovedKind,
    no: i64,
}

impl Leftover {
    /// Creates a leftover of a thing with one number.
    pub(super) const fn of(kind: RemovedKind, no: i64) -> Self {
        Self { kind, no }
    }

    fn read(row: &Row<'_>) -> Done<Self> {
        Ok(Self { no: row.get(0)?, kind: code(row, 1, RemovedKind::from_code)? })
    }

    /// Records the leftover, so that it is worked off.
    pub(super) fn note(&self, connection: &Connection) -> Done<()> {
        let sql = "INSERT INTO leftovers (kind, no) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        run(connection, sql, params![self.kind.code(), self.no]).map(drop)
    }

    /// Records it and begins; a small leftover is deleted completely by this transaction.
    pub(super) fn begin(self, connection: &Connection, portion: &Portion<'_>) -> Done<()> {
        self.note(connection)?;
        self.work_off(connection, portion)
    }

    /// Deletes rows within the portion.
    fn work_off(self, connection: &Connection, portion: &Portion<'_>) -> Done<()> {
        let is_done = match self.kind {
            RemovedKind::Topic => topic(connection, self.no, portion)?,
            RemovedKind::Group => group(connection, self.no, portion)?,
            RemovedKind::Person => person(connection, self.no, portion)?,
            RemovedKind::App => app::rest(connection, self.no, portion)?,
        };
        if is_done { self.forget(connection) } else { Ok(()) }
    }

    /// Deletes the record, because no rows are left, or none that can be deleted.
    fn forget(&self, connection: &Connection) -> Done<()> {
        let sql = "DELETE FROM leftovers WHERE kind = $1 AND no = $2";
        run(connection, sql, params![self.kind.code(), self.no]).map(drop)
    }
}

/// Deletes rows of leftovers within the portion; returns true if more are left.
pub(super) fn go_on(connection: &Connection, portion: &Portion<'_>) -> Done<bool> {
    let sql = "SELECT no, kind FROM leftovers ORDER BY kind, no";
    while !portion.is_over() {
        let found = readable(connection, "leftovers", (sql, ()), 1, Leftover::read)?;
        let Some(next) = found.0.first() else {
            // Unreadable records would be read again for ever.
            run(connection, "DELETE FROM leftovers", ())?;
            return Ok(false);
        };
        if let Err(fault) = attempt(connection, || next.work_off(connection, portion))? {
            // Rows that cannot be deleted belong to no live thing. They may stay, and must not block the other leftovers.
            note_damage(connection, "leftovers", next.no, &fault);
            next.forget(connection)?;
        }
    }
    are_some(connection)
}

/// Returns true if there are leftovers.
pub(super) fn are_some(connection: &Connection) -> Done<bool> {
    exists(connection, "SELECT 1 FROM leftovers LIMIT 1", ())
}

/// Removes the subscriptions of a topic.
fn topic(connection: &Connection, no: i64, portion: &Portion<'_>) -> Done<bool> {
    let sql = "DELETE FROM subscriptions WHERE (topic, key) IN
        (SELECT topic, key FROM subscriptions WHERE topic = $1 ORDER BY key LIMIT $2)";
    delete(connection, sql, no, portion)
}

/// Removes the members of a group.
fn group(connection: &Connection, no: i64, portion: &Portion<'_>) -> Done<bool> {
    let of_people = "DELETE FROM group_users WHERE (grp, external_id) IN
        (SELECT grp, external_id FROM group_users WHERE grp = $1 LIMIT $2)";
    let of_devices = "DELETE FROM group_devices WHERE (grp, device) IN
        (SELECT grp, device FROM group_devices WHERE grp = $1 LIMIT $2)";
    Ok(delete(connection, of_people, no, portion)? && delete(connection, of_devices, no, portion)?)
}

/// Removes the owner of a deleted user's devices.
fn person(connection: &Connection, no: i64, portion: &Portion<'_>) -> Done<bool> {
    let next = "SELECT key FROM user_devices WHERE owner = $1 ORDER BY key LIMIT $2";
    while !portion.is_over() {
        let keys: Vec<i64> = all(connection, next, [no, limit(AT_ONCE_MAX_COUNT)], |row| row.get(0))?;
        let is_last = keys.len() < AT_ONCE_MAX_COUNT;
        let sql = "UPDATE devices SET owner = NULL WHERE key = ANY($2) AND owner = $1";
        run(connection, sql, params![no, keys.clone()])?;
        run(connection, "DELETE FROM user_devices WHERE owner = $1 AND key = ANY($2)", params![no, keys])?;
        if is_last {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Deletes rows with a statement that takes a number and a limit; returns true if none is left.
fn delete(connection: &Connection, sql: &str, no: i64, portion: &Portion<'_>) -> Done<bool> {
    while !portion.is_over() {
        if run(connection, sql, [no, limit(AT_ONCE_MAX_COUNT)])? < AT_ONCE_MAX_COUNT {
            return Ok(true);
        }
    }
    Ok(false)
}
