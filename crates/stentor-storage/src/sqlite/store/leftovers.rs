//! Leftovers: rows of removed things that no caller sees any more. They are deleted a few per transaction, also after restarts.

mod app;

pub(super) use app::leave_fleets;

use rusqlite::Connection;

use crate::sql::{
    Done, Portion, RemovedKind, Row, all, attempt, code, exists, note_damage, one, params, readable, run,
};
use crate::sqlite::store::tokens::rebuild;

/// Rows that one statement removes.
const AT_ONCE_MAX_COUNT: usize = 256;

/// The kind of a leftover; the schema defines the meaning of its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeftoverKind {
    Removed(RemovedKind),
    Member,
    Fleet,
    /// Leaves of token hashes to be checked (`no` 0), or devices with hashes to be rebuilt (`no` 1).
    Hashes,
}

/// The rest of one removed thing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leftover {
    pub(super) kind: LeftoverKind,
    pub(super) no: i64,
    pub(super) other: i64,
    pub(super) cursor: i64,
}

impl LeftoverKind {
    const fn code(self) -> u8 {
        match self {
            Self::Removed(kind) => kind.code(),
            Self::Member => 5,
            Self::Fleet => 6,
            Self::Hashes => 7,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        match code {
            5 => Some(Self::Member),
            6 => Some(Self::Fleet),
            7 => Some(Self::Hashes),
            _ => RemovedKind::from_code(code).map(Self::Removed),
        }
    }
}

impl Leftover {
    /// Creates a leftover of a thing with one number.
    pub(super) const fn of(kind: LeftoverKind, no: i64) -> Self {
        Self { kind, no, other: 0, cursor: 0 }
    }

    /// Creates a leftover for a user's devices, which are to be updated in a group.
    pub(super) const fn member(group: i64, person: i64) -> Self {
        Self { kind: LeftoverKind::Member, no: group, other: person, cursor: 0 }
    }

    fn read(row: &Row<'_>) -> Done<Self> {
        let kind = code(row, 0, LeftoverKind::from_code)?;
        Ok(Self { kind, no: row.get(1)?, other: row.get(2)?, cursor: row.get(3)? })
    }

    /// Records the leftover, so that it is worked off.
    pub(super) fn note(&self, connection: &Connection) -> Done<()> {
        let sql = "INSERT OR REPLACE INTO leftovers (kind, no, other, cursor) VALUES (?1, ?2, ?3, ?4)";
        run(connection, sql, params![self.kind.code(), self.no, self.other, self.cursor]).map(drop)
    }

    /// Records it, unless the connection only reads: the next writer meets the same damage.
    pub(super) fn note_if_writing(&self, connection: &Connection) -> Done<()> {
        let reads_only: bool = connection.pragma_query_value(None, "query_only", |row| row.get(0))?;
        if reads_only { Ok(()) } else { self.note(connection) }
    }

    /// Records it and begins; a small leftover is deleted completely by this transaction.
    pub(super) fn begin(self, connection: &Connection, portion: &Portion<'_>) -> Done<()> {
        self.note(connection)?;
        self.work_off(connection, portion)
    }

    /// Goes on as far as the portion goes.
    fn work_off(mut self, connection: &Connection, portion: &Portion<'_>) -> Done<()> {
        let is_done = match self.kind {
            LeftoverKind::Removed(RemovedKind::Topic) => topic(connection, self.no, portion)?,
            LeftoverKind::Removed(RemovedKind::Group) => group(connection, self.no, portion)?,
            LeftoverKind::Removed(RemovedKind::Person) => person(connection, self.no, portion)?,
            LeftoverKind::Removed(RemovedKind::App) => app::rest(connection, self.no, portion)?,
            LeftoverKind::Member => self.follow(connection, portion)?,
            LeftoverKind::Fleet => app::fleet(connection, self, portion)?,
            LeftoverKind::Hashes => rebuild::go_on(connection, &mut self, portion)?,
        };
        if !is_done {
            return self.note(connection);
        }
        self.forget(connection)
    }

    /// Deletes the record, because no rows are left, or none that can be deleted.
    fn forget(&self, connection: &Connection) -> Done<()> {
        let sql = "DELETE FROM leftovers WHERE kind = ?1 AND no = ?2 AND other = ?3";
        run(connection, sql, params![self.kind.code(), self.no, self.other]).map(drop)
    }

    /// Adds a user's devices to a group's audience, or removes them.
    fn follow(&mut self, connection: &Connection, portion: &Portion<'_>) -> Done<bool> {
        let (group, person) = (self.no, self.other);
        // Checked in each portion: a user that left may have joined again since, and the present state is applied.
        let known = "SELECT 1 FROM group_users WHERE owner = ?1 AND grp = ?2";
        let change = match exists(connection, known, [person, group])? {
            true => "INSERT OR IGNORE INTO group_user_devices (grp, key, owner) VALUES (?1, ?2, ?3)",
            false => "DELETE FROM group_user_devices WHERE grp = ?1 AND key = ?2 AND owner = ?3",
        };
        let next = "SELECT key FROM user_devices WHERE owner = ?1 AND key > ?2 ORDER BY key LIMIT ?3";
        while !portion.is_over() {
            let some = params![person, self.cursor, AT_ONCE_MAX_COUNT as i64];
            let keys: Vec<i64> = all(connection, next, some, |row| row.get(0))?;
            for key in &keys {
                run(connection, change, [group, *key, person])?;
            }
            self.cursor = keys.last().copied().unwrap_or(self.cursor);
            portion.note_progress();
            if keys.len() < AT_ONCE_MAX_COUNT {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Works off leftovers within the portion; returns true if more are left.
pub(super) fn go_on(connection: &Connection, portion: &Portion<'_>) -> Done<bool> {
    let sql = "SELECT kind, no, other, cursor FROM leftovers ORDER BY kind, no, other ";
    while !portion.is_over() {
        let found = readable(connection, "leftovers", (sql, ()), 1, Leftover::read)?;
        let Some(next) = found.0.first() else {
            // Unreadable records would be read again for ever.
            run(connection, "DELETE FROM leftovers", ())?;
            return Ok(false);
        };
        if let Err(fault) = attempt(connection, || next.work_off(connection, portion))? {
            // The attempt was rolled back as a whole, so that the record matches the present state. Rows that cannot be deleted belong to
            // no live thing. They may stay, and must not block the other leftovers.
            note_damage(connection, "leftovers", next.no, &fault);
            next.forget(connection)?;
        }
    }
    are_some(connection)
}

/// Returns true if there are leftovers.
pub(super) fn are_some(connection: &Connection) -> Done<bool> {
    exists(connection, "SELECT 1 FROM leftovers", ())
}

/// Updates the devices of a group's users within one portion; returns true if more are left.
pub(super) fn follow_group(connection: &Connection, group: i64) -> Done<bool> {
    let portion = Portion::begin(connection);
    let sql = "SELECT kind, no, other, cursor FROM leftovers WHERE kind = 5 AND no = ?1 LIMIT 1";
    while !portion.is_over() {
        let Some(next) = one(connection, sql, [group], Leftover::read)? else { return Ok(false) };
        next.work_off(connection, &portion)?;
    }
    is_following(connection, group)
}

/// Returns true if the devices of a user are still to be updated in a group.
pub(super) fn is_following(connection: &Connection, group: i64) -> Done<bool> {
    exists(connection, "SELECT 1 FROM leftovers WHERE kind = 5 AND no = ?1", [group])
}

/// Removes the subscriptions of a topic.
fn topic(connection: &Connection, no: i64, portion: &Portion<'_>) -> Done<bool> {
    let of_topic = "DELETE FROM subscriptions WHERE (topic, key) IN
        (SELECT topic, key FROM subscriptions WHERE topic = ?1 ORDER BY key LIMIT ?2)";
    delete(connection, &[of_topic], no, portion)
}

/// Removes the members of a group, and the devices that are in it for them.
fn group(connection: &Connection, no: i64, portion: &Portion<'_>) -> Done<bool> {
    let statements = [
        "DELETE FROM group_users WHERE (grp, external_id) IN
            (SELECT grp, external_id FROM group_users WHERE grp = ?1 LIMIT ?2)",
        "DELETE FROM group_devices WHERE (grp, device) IN
            (SELECT grp, device FROM group_devices WHERE grp = ?1 LIMIT ?2)",
        "DELETE FROM group_user_devices WHERE (grp, key, owner) IN
            (SELECT grp, key, owner FROM group_user_devices WHERE grp = ?1 LIMIT ?2)",
    ];
    for statement in statements {
        if !delete(connection, &[statement], no, portion)? {
            return Ok(false);
        }
    }
    // Pending updates of members are void without the group.
    run(connection, "DELETE FROM leftovers WHERE kind = 5 AND no = ?1", [no])?;
    Ok(true)
}

/// Removes the owner of a deleted user's devices.
fn person(connection: &Connection, no: i64, portion: &Portion<'_>) -> Done<bool> {
    let next = "SELECT key FROM user_devices WHERE owner = ?1 ORDER BY key LIMIT 1";
    while !portion.is_over() {
        let Some(key) = one(connection, next, [no], |row| row.get::<i64>(0))? else {
            run(connection, "DELETE FROM leftovers WHERE kind = 5 AND other = ?1", [no])?;
            return Ok(true);
        };
        run(connection, "UPDATE devices SET owner = NULL WHERE key = ?1 AND owner = ?2", [key, no])?;
        run(connection, "DELETE FROM user_devices WHERE owner = ?1 AND key = ?2", [no, key])?;
    }
    Ok(false)
}

/// Deletes rows with statements that take a number and a limit; returns true if the last statement left none.
fn delete(connection: &Connection, statements: &[&str], no: i64, portion: &Portion<'_>) -> Done<bool> {
    while !portion.is_over() {
        let mut gone = 0;
        for sql in statements {
            gone = run(connection, sql, [no, AT_ONCE_MAX_COUNT as i64])?;
        }
        if gone < AT_ONCE_MAX_COUNT {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
