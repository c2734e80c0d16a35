//! From a push token to the device that holds it.
//!
//! Hashes come in no order, so that writing them one by one into a large table writes a page for each. They go into a small
//! table first, which is emptied into the large one stretch by stretch, in order of hash.

use rusqlite::{Connection, Row, Statement, params};
use stentor_core::device::{ProviderKind, PushToken};
use stentor_core::id::AppId;

use super::fleets::{Fleet, fleet_of};
use crate::sqlite::bulk::{self, Places};
use crate::sqlite::fault::{Done, damaged};
use crate::sqlite::query::{one, run};

/// How large the small table may become.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// Hashes that may be fresh; more are moved on.
    fresh_max_count: i64,
    /// Hashes moved at once, side by side.
    stretch_count: i64,
}

const ROOM: Room = Room { fresh_max_count: 131_072, stretch_count: 16_384 };

/// Hashes a token with its app and provider to 64 bits; a hit is always checked against the token itself.
pub(super) fn hash(app: AppId, provider: ProviderKind, token: &PushToken) -> i64 {
    let text = token.expose().as_bytes();
    let mut bytes = Vec::with_capacity(9 + text.len());
    bytes.extend_from_slice(&app.raw().to_le_bytes());
    bytes.push(provider.code());
    bytes.extend_from_slice(text);
    let digest = blake3::hash(&bytes);
    digest.as_bytes().first_chunk().map_or(0, |first| i64::from_le_bytes(*first))
}

/// Finds the key of the device that holds the token.
pub(super) fn holder(connection: &Connection, fleet: Fleet, token: &PushToken) -> Done<Option<i64>> {
    holder_by_hash(connection, fleet, hash(fleet.app, fleet.provider, token), token)
}

/// Finds the key of the device that holds the token, its hash being known.
pub(super) fn holder_by_hash(
    connection: &Connection,
    fleet: Fleet,
    hash: i64,
    token: &PushToken,
) -> Done<Option<i64>> {
    let sql = "SELECT key FROM token_hashes_fresh WHERE hash = ?1
        UNION ALL SELECT key FROM token_hashes WHERE hash = ?1";
    let mut candidates = connection.prepare_cached(sql)?;
    let mut rows = candidates.query([hash])?;
    while let Some(row) = rows.next()? {
        let key: i64 = row.get(0)?;
        if fleet_of(key) == fleet.no && holds(connection, key, token)? {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

fn holds(connection: &Connection, key: i64, token: &PushToken) -> Done<bool> {
    let mut statement = connection.prepare_cached("SELECT token FROM devices WHERE key = ?1")?;
    let mut rows = statement.query([key])?;
    let Some(row) = rows.next()? else { return Ok(false) };
    let kept = row.get_ref(0)?.as_str().map_err(|_| damaged("a token that is no text"))?;
    Ok(kept == token.expose())
}

/// Reads the devices behind many hashes: `columns` of `devices d`, the hash last.
pub(super) fn behind(
    connection: &Connection,
    columns: &str,
    hashes: &[i64],
    mut read: impl FnMut(&Row<'_>) -> Done<()>,
) -> Done<()> {
    for table in ["token_hashes_fresh", "token_hashes"] {
        let width = if hashes.len() > 1 { bulk::WIDTH } else { 1 };
        let given = bulk::places(1, width);
        let sql = format!(
            "SELECT {columns}, h.hash FROM (VALUES {given}) given
            CROSS JOIN {table} h ON h.hash = given.column1 CROSS JOIN devices d ON d.key = h.key"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        for some in hashes.chunks(width) {
            read_some(&mut statement, some, &mut read)?;
        }
    }
    Ok(())
}

fn read_some(
    statement: &mut Statement<'_>,
    hashes: &[i64],
    read: &mut impl FnMut(&Row<'_>) -> Done<()>,
) -> Done<()> {
    // Places that stay empty are equal to nothing.
    let mut places = Places::of(statement);
    hashes.iter().try_for_each(|hash| places.put(hash))?;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        read(row)?;
    }
    Ok(())
}

/// Notes who holds which token: pairs of hash and key, best in order of hash.
pub(super) fn note(connection: &Connection, pairs: &[(i64, i64)]) -> Done<()> {
    note_within(connection, pairs, ROOM)
}

fn note_within(connection: &Connection, pairs: &[(i64, i64)], room: Room) -> Done<()> {
    if pairs.is_empty() {
        return Ok(());
    }
    let head = ("INSERT OR FAIL INTO token_hashes_fresh (hash, key) VALUES ", 2);
    bulk::insert(connection, head, pairs, |places, (hash, key)| {
        places.put(hash)?;
        places.put(key)
    })?;
    let count = change_count(connection, i64::try_from(pairs.len()).unwrap_or(i64::MAX))?;
    make_room(connection, count, room)
}

/// Forgets who held a token.
pub(super) fn forget(connection: &Connection, hash: i64, key: i64) -> Done<()> {
    let fresh = run(connection, "DELETE FROM token_hashes_fresh WHERE hash = ?1 AND key = ?2", [hash, key])?;
    if fresh > 0 {
        return change_count(connection, -1).map(drop);
    }
    run(connection, "DELETE FROM token_hashes WHERE hash = ?1 AND key = ?2", [hash, key]).map(drop)
}

/// Moves stretches on until few enough hashes are fresh.
fn make_room(connection: &Connection, mut count: i64, room: Room) -> Done<()> {
    while count > room.fresh_max_count {
        count = change_count(connection, -move_stretch(connection, room.stretch_count)?)?;
    }
    Ok(())
}

/// Moves the next stretch into the large table; gives how many it had.
fn move_stretch(connection: &Connection, most: i64) -> Done<i64> {
    let from = one(connection, "SELECT moved_from FROM token_hashes_fresh_count", [], |row| Ok(row.get(0)?))?;
    let from: i64 = from.ok_or_else(|| damaged("no count of fresh token hashes"))?;
    let sql = "SELECT hash FROM token_hashes_fresh WHERE hash >= ?1 ORDER BY hash LIMIT 1 OFFSET ?2";
    let last = one(connection, sql, [from, most - 1], |row| Ok(row.get(0)?))?;
    let last: i64 = last.unwrap_or(i64::MAX);
    let sql = "INSERT OR FAIL INTO token_hashes (hash, key)
        SELECT hash, key FROM token_hashes_fresh WHERE hash BETWEEN ?1 AND ?2 ORDER BY hash, key";
    let moved = run(connection, sql, [from, last])?;
    run(connection, "DELETE FROM token_hashes_fresh WHERE hash BETWEEN ?1 AND ?2", [from, last])?;
    let next = last.checked_add(1).unwrap_or(i64::MIN);
    run(connection, "UPDATE token_hashes_fresh_count SET moved_from = ?1", [next])?;
    Ok(i64::try_from(moved).unwrap_or(i64::MAX))
}

fn change_count(connection: &Connection, change: i64) -> Done<i64> {
    let sql = "UPDATE token_hashes_fresh_count SET count = count + ?1 RETURNING count";
    let count = one(connection, sql, params![change], |row| Ok(row.get(0)?))?;
    count.ok_or_else(|| damaged("no count of fresh token hashes"))
}

#[cfg(test)]
mod tests;
