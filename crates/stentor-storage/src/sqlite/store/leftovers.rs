//! What is gone for everybody and not yet from the file: its rows go a few in each transaction, across restarts too.

mod app;

pub(super) use app::leave_fleets;

use rusqlite::Connection;

use crate::sql::{Done, Portion, Row, all, attempt, code, exists, note_damage, one, params, readable, run};
use crate::sqlite::store::tokens::rebuild;

/// Rows that one statement removes.
const AT_ONCE_MAX_COUNT: usize = 256;

/// Of what kind it is; which columns mean what stands in the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeftoverKind {
    Topic,
    Group,
    Person,
    App,
    Member,
    Fleet,
    /// Leaves of token hashes that are to be looked over (`no` 0), or devices whose hashes are to be found again (`no` 1).
    Hashes,
}

/// What is left of one thing.
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
            Self::Topic => 1,
            Self::Group => 2,
            Self::Person => 3,
            Self::App => 4,
            Self::Member => 5,
            Self::Fleet => 6,
            Self::Hashes => 7,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Topic),
            2 => Some(Self::Group),
            3 => Some(Self::Person),
            4 => Some(Self::App),
            5 => Some(Self::Member),
            6 => Some(Self::Fleet),
            7 => Some(Self::Hashes),
            _ => None,
        }
    }
}

impl Leftover {
    /// Names what is left of something that has one number.
    pub(super) const fn of(kind: LeftoverKind, no: i64) -> Self {
        Self { kind, no, other: 0, cursor: 0 }
    }

    /// Names the devices of a person that are to follow whether the person is in a group.
    pub(super) const fn member(group: i64, person: i64) -> Self {
        Self { kind: LeftoverKind::Member, no: group, other: person, cursor: 0 }
    }

    fn read(row: &Row<'_>) -> Done<Self> {
        let kind = code(row, 0, LeftoverKind::from_code)?;
        Ok(Self { kind, no: row.get(1)?, other: row.get(2)?, cursor: row.get(3)? })
    }

    /// Notes that it is to be worked off.
    pub(super) fn note(&self, connection: &Connection) -> Done<()> {
        let sql = "INSERT OR REPLACE INTO leftovers (kind, no, other, cursor) VALUES (?1, ?2, ?3, ?4)";
        run(connection, sql, params![self.kind.code(), self.no, self.other, self.cursor]).map(drop)
    }

    /// Notes it, unless the connection only reads: whoever writes next meets the same.
    pub(super) fn note_if_writing(&self, connection: &Connection) -> Done<()> {
        let reads_only: bool = connection.pragma_query_value(None, "query_only", |row| row.get(0))?;
        if reads_only { Ok(()) } else { self.note(connection) }
    }

    /// Notes it and begins; what is little is gone with this transaction.
    pub(super) fn begin(self, connection: &Connection, portion: &Portion<'_>) -> Done<()> {
        self.note(connection)?;
        self.work_off(connection, portion)
    }

    /// Goes on as far as the portion goes.
    fn work_off(mut self, connection: &Connection, portion: &Portion<'_>) -> Done<()> {
        let is_done = match self.kind {
            LeftoverKind::Topic => topic(connection, self.no, portion)?,
            LeftoverKind::Group => group(connection, self.no, portion)?,
            LeftoverKind::Person => person(connection, self.no, portion)?,
            LeftoverKind::App => app::rest(connection, self.no, portion)?,
            LeftoverKind::Member => self.follow(connection, portion)?,
            LeftoverKind::Fleet => app::fleet(connection, self, portion)?,
            LeftoverKind::Hashes => rebuild::go_on(connection, &mut self, portion)?,
        };
        if !is_done {
            return self.note(connection);
        }
        self.forget(connection)
    }

    /// Notes that nothing is left, or nothing that can be removed.
    fn forget(&self, connection: &Connection) -> Done<()> {
        let sql = "DELETE FROM leftovers WHERE kind = ?1 AND no = ?2 AND other = ?3";
        run(connection, sql, params![self.kind.code(), self.no, self.other]).map(drop)
    }

    /// Puts a person's devices into a group's audience, or takes them out.
    fn follow(&mut self, connection: &Connection, portion: &Portion<'_>) -> Done<bool> {
        let (group, person) = (self.no, self.other);
        // Asked at each portion: who has left may have joined again meanwhile, and what holds now is followed.
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

/// Goes on with whatever is left, as far as the portion goes; returns whether there is more.
pub(super) fn go_on(connection: &Connection, portion: &Portion<'_>) -> Done<bool> {
    let sql = "SELECT kind, no, other, cursor FROM leftovers ORDER BY kind, no, other ";
    while !portion.is_over() {
        let found = readable(connection, "leftovers", (sql, ()), 1, Leftover::read)?;
        let Some(next) = found.0.first() else {
            // What names nothing that could be removed would be looked at for ever.
            run(connection, "DELETE FROM leftovers", ())?;
            return Ok(false);
        };
        if let Err(fault) = attempt(connection, || next.work_off(connection, portion))? {
            // The attempt was undone as a whole, so that the note is of what stands there.
            // What cannot be removed is nobody's any more: it may stay, and must not keep the rest from being removed.
            note_damage(connection, "leftovers", next.no, &fault);
            next.forget(connection)?;
        }
    }
    are_some(connection)
}

/// Returns whether anything is left of what was removed.
pub(super) fn are_some(connection: &Connection) -> Done<bool> {
    exists(connection, "SELECT 1 FROM leftovers", ())
}

/// Goes on with a group's people as far as one portion goes; returns whether there is more.
pub(super) fn follow_group(connection: &Connection, group: i64) -> Done<bool> {
    let portion = Portion::begin(connection);
    let sql = "SELECT kind, no, other, cursor FROM leftovers WHERE kind = 5 AND no = ?1 LIMIT 1";
    while !portion.is_over() {
        let Some(next) = one(connection, sql, [group], Leftover::read)? else { return Ok(false) };
        next.work_off(connection, &portion)?;
    }
    is_following(connection, group)
}

/// Returns whether devices of somebody are still to follow into or out of a group.
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
    // Who was to follow into the group has none to follow into.
    run(connection, "DELETE FROM leftovers WHERE kind = 5 AND no = ?1", [no])?;
    Ok(true)
}

/// Leaves a person's devices to nobody.
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

/// Removes rows with statements that take a number and how many; returns whether none is left. The last one of them says.
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
