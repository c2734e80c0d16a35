//! What is gone for everybody and not yet from the database: its rows go a few in each transaction, across restarts too.

mod app;

use crate::postgres::engine::Connection;
use crate::sql::{Done, Portion, Row, all, attempt, code, exists, limit, note_damage, params, readable, run};

/// Rows that one statement removes.
const AT_ONCE_MAX_COUNT: usize = 1_024;

/// What is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeftoverKind {
    Topic,
    Group,
    Person,
    App,
}

/// A thing that is removed and of which rows are left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leftover {
    kind: LeftoverKind,
    no: i64,
}

impl LeftoverKind {
    const fn code(self) -> u8 {
        match self {
            Self::Topic => 1,
            Self::Group => 2,
            Self::Person => 3,
            Self::App => 4,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Topic),
            2 => Some(Self::Group),
            3 => Some(Self::Person),
            4 => Some(Self::App),
            _ => None,
        }
    }
}

impl Leftover {
    /// Names what is left of something that has one number.
    pub(super) const fn of(kind: LeftoverKind, no: i64) -> Self {
        Self { kind, no }
    }

    fn read(row: &Row<'_>) -> Done<Self> {
        Ok(Self { no: row.get(0)?, kind: code(row, 1, LeftoverKind::from_code)? })
    }

    /// Notes that it is to be worked off.
    pub(super) fn note(&self, connection: &Connection) -> Done<()> {
        let sql = "INSERT INTO leftovers (kind, no) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        run(connection, sql, params![self.kind.code(), self.no]).map(drop)
    }

    /// Notes it and begins; what is little is gone with this transaction.
    pub(super) fn begin(self, connection: &Connection, portion: &Portion<'_>) -> Done<()> {
        self.note(connection)?;
        self.work_off(connection, portion)
    }

    /// Goes on as far as the portion goes.
    fn work_off(self, connection: &Connection, portion: &Portion<'_>) -> Done<()> {
        let is_done = match self.kind {
            LeftoverKind::Topic => topic(connection, self.no, portion)?,
            LeftoverKind::Group => group(connection, self.no, portion)?,
            LeftoverKind::Person => person(connection, self.no, portion)?,
            LeftoverKind::App => app::rest(connection, self.no, portion)?,
        };
        if is_done { self.forget(connection) } else { Ok(()) }
    }

    /// Notes that nothing is left, or nothing that can be removed.
    fn forget(&self, connection: &Connection) -> Done<()> {
        let sql = "DELETE FROM leftovers WHERE kind = $1 AND no = $2";
        run(connection, sql, params![self.kind.code(), self.no]).map(drop)
    }
}

/// Goes on with whatever is left, as far as the portion goes; returns whether there is more.
pub(super) fn go_on(connection: &Connection, portion: &Portion<'_>) -> Done<bool> {
    let sql = "SELECT no, kind FROM leftovers ORDER BY kind, no";
    while !portion.is_over() {
        let found = readable(connection, "leftovers", (sql, ()), 1, Leftover::read)?;
        let Some(next) = found.0.first() else {
            // What names nothing that could be removed would be looked at for ever.
            run(connection, "DELETE FROM leftovers", ())?;
            return Ok(false);
        };
        if let Err(fault) = attempt(connection, || next.work_off(connection, portion))? {
            // What cannot be removed is nobody's any more: it may stay, and must not keep the rest from being removed.
            note_damage(connection, "leftovers", next.no, &fault);
            next.forget(connection)?;
        }
    }
    are_some(connection)
}

/// Returns whether anything is left of what was removed.
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

/// Leaves a person's devices to nobody.
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

/// Removes rows with a statement that takes a number and how many; returns whether none is left.
fn delete(connection: &Connection, sql: &str, no: i64, portion: &Portion<'_>) -> Done<bool> {
    while !portion.is_over() {
        if run(connection, sql, [no, limit(AT_ONCE_MAX_COUNT)])? < AT_ONCE_MAX_COUNT {
            return Ok(true);
        }
    }
    Ok(false)
}
