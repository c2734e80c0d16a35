//! From a push token to the device that holds it.
//!
//! Hashes come in no order, so that a batch of them touches nearly each page of a large table. They go into a small table
//! first, which is emptied into the large one stretch by stretch, in order of hash.

mod leaves;
pub(super) mod rebuild;

use rusqlite::{Connection, Statement};
use stentor_core::device::{ProviderKind, PushToken};
use stentor_core::id::{AppId, DeviceId};

use super::app_providers::{AppProvider, device_of};
use super::leftovers::{Leftover, LeftoverKind};
use super::registration::token_hash;
use crate::sql::{Done, Row, all, damaged, exists, limit, one, run};
use crate::sqlite::bulk::{self, Places};
use leaves::{BITS, HashPair, Leaves};

/// The limits of the small table.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// Hashes that may be fresh; more are moved on.
    fresh_max_count: i64,
    /// Neighbouring hashes that are moved at once, with the rest of the last one's leaf.
    stretch_count: usize,
}

const ROOM: Room = Room { fresh_max_count: 131_072, stretch_count: 16_384 };

/// Hashes a token with its app and provider to 40 bits; a hit is always checked against the token itself.
pub(super) fn hash(app: AppId, provider: ProviderKind, token: &PushToken) -> i64 {
    cut(token_hash(app, provider, token))
}

/// Keeps the upper bits of a hash.
const fn cut(hash: i64) -> i64 {
    (hash.cast_unsigned() >> (64 - BITS)).cast_signed()
}

/// Finds the key of the device that holds the token.
pub(super) fn holder(connection: &Connection, fleet: AppProvider, token: &PushToken) -> Done<Option<i64>> {
    holder_by_hash(connection, fleet, hash(fleet.app, fleet.provider, token), token)
}

/// Finds the key of the device that holds the token, its hash being known.
pub(super) fn holder_by_hash(
    connection: &Connection,
    fleet: AppProvider,
    hash: i64,
    token: &PushToken,
) -> Done<Option<i64>> {
    for (_, device) in with_hashes(connection, &[hash])? {
        let key = key_in(fleet, device);
        if holds(connection, key, token)? {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

/// Returns the key that a device has if it is of the fleet; if it is of another, no device has that key.
fn key_in(fleet: AppProvider, device: i64) -> i64 {
    fleet.bound(DeviceId::from_raw(device.unsigned_abs()))
}

/// Finds which devices may hold the tokens with hashes that are in order.
fn with_hashes(connection: &Connection, hashes: &[i64]) -> Done<Vec<HashPair>> {
    let mut found = Vec::new();
    for leaves in [fresh(connection), old(connection)] {
        leaves.find(hashes, |pair| found.push(pair))?;
    }
    Ok(found)
}

fn holds(connection: &Connection, key: i64, token: &PushToken) -> Done<bool> {
    let mut statement = connection.prepare_cached("SELECT token FROM devices WHERE key = ?1")?;
    let mut rows = statement.query([key])?;
    let Some(row) = rows.next()? else { return Ok(false) };
    let stored = row.get_ref(0)?.as_str().map_err(|_| damaged("a token that is no text"))?;
    Ok(stored == token.expose())
}

/// Reads the devices behind many hashes in order, each of a fleet: `columns` of `devices d`, the hash last.
pub(super) fn behind(
    connection: &Connection,
    columns: &str,
    wanted: &[(i64, AppProvider)],
    mut read: impl FnMut(&Row<'_>) -> Done<()>,
) -> Done<()> {
    let found = candidates(connection, wanted)?;
    // One alone is the usual look-up, and needs no wide statement.
    let width = if found.len() > 1 { bulk::WIDTH } else { 1 };
    let given = bulk::places(2, width);
    let sql = format!(
        "SELECT {columns}, given.column1 FROM (VALUES {given}) given CROSS JOIN devices d ON d.key = given.column2"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    found.chunks(width).try_for_each(|some| read_some(&mut statement, some, &mut read))
}

/// Finds the keys that may be meant, with their hashes.
fn candidates(connection: &Connection, wanted: &[(i64, AppProvider)]) -> Done<Vec<(i64, i64)>> {
    let mut hashes: Vec<i64> = wanted.iter().map(|(hash, _)| *hash).collect();
    hashes.dedup();
    let mut found = Vec::new();
    for (hash, device) in with_hashes(connection, &hashes)? {
        let from = wanted.partition_point(|(before, _)| *before < hash);
        let same = wanted[from..].iter().take_while(|(of, _)| *of == hash);
        found.extend(same.map(|(_, fleet)| (hash, key_in(*fleet, device))));
    }
    Ok(found)
}

fn read_some(
    statement: &mut Statement<'_>,
    some: &[(i64, i64)],
    read: &mut impl FnMut(&Row<'_>) -> Done<()>,
) -> Done<()> {
    // Places that stay empty are equal to nothing.
    let mut places = Places::of(statement);
    for (hash, key) in some {
        places.put(hash)?;
        places.put(key)?;
    }
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        read(row)?;
    }
    Ok(())
}

/// Records the holders of tokens, as hashes and keys.
pub(super) fn note(connection: &Connection, holders: impl IntoIterator<Item = (i64, i64)>) -> Done<()> {
    let mut pairs: Vec<HashPair> = holders.into_iter().map(pair).collect();
    pairs.sort_unstable();
    note_within(connection, &pairs, ROOM)
}

fn pair((hash, key): (i64, i64)) -> HashPair {
    (hash, device_of(key).raw().cast_signed())
}

fn note_within(connection: &Connection, pairs: &[HashPair], room: Room) -> Done<()> {
    if pairs.is_empty() {
        return Ok(());
    }
    let added = fresh(connection).add(pairs)?;
    let count = change_count(connection, limit(added))?;
    make_room(connection, count, room)
}

/// Removes the holders of tokens, as hashes and keys.
pub(super) fn forget(connection: &Connection, holders: impl IntoIterator<Item = (i64, i64)>) -> Done<()> {
    let mut pairs: Vec<HashPair> = holders.into_iter().map(pair).collect();
    pairs.sort_unstable();
    // A pair is in one of both tables, and only the small one is counted.
    let elsewhere = fresh(connection).remove(&pairs)?;
    let removed = pairs.len() - elsewhere.len();
    if removed > 0 {
        change_count(connection, -limit(removed))?;
    }
    old(connection).remove(&elsewhere).map(drop)
}

/// Moves stretches on until few enough hashes are fresh.
fn make_room(connection: &Connection, mut count: i64, room: Room) -> Done<()> {
    while count > room.fresh_max_count {
        let moved = move_stretch(connection, room.stretch_count)?;
        // Without an end here it would be counted down for ever.
        if moved == 0 {
            tracing::error!("fewer fresh token hashes than were counted: their count begins anew");
            Leftover::of(LeftoverKind::Hashes, 0).note(connection)?;
            return change_count(connection, -count).map(drop);
        }
        count = change_count(connection, -limit(moved))?;
    }
    Ok(())
}

/// Moves the next hashes into the large table; returns their number.
fn move_stretch(connection: &Connection, most: usize) -> Done<usize> {
    let sql = "SELECT moved_from FROM token_leaves_fresh_count";
    let from = one(connection, sql, (), |row| row.get(0))?;
    let from: i64 = from.ok_or_else(|| damaged("no count of fresh token hashes"))?;
    let mut taken = fresh(connection).take(from, most)?;
    // The last leaf was empty: the next stretch begins at the first.
    if taken.pairs.is_empty() {
        taken = fresh(connection).take(taken.next, most)?;
    }
    old(connection).add(&taken.pairs)?;
    run(connection, "UPDATE token_leaves_fresh_count SET moved_from = ?1", [taken.next])?;
    Ok(taken.pairs.len())
}

/// Repairs a missing or invalid count of fresh hashes: all hashes are moved, and the count starts again.
pub(super) fn mend(connection: &Connection) -> Done<()> {
    if fresh(connection).mend()? {
        Leftover::of(LeftoverKind::Hashes, 0).note(connection)?;
    }
    let sane =
        "SELECT 1 FROM token_leaves_fresh_count WHERE typeof(count) = 'integer' AND count BETWEEN 0 AND ?1
        AND typeof(moved_from) = 'integer'";
    if exists(connection, sane, [1_i64 << BITS])? {
        return Ok(());
    }
    tracing::error!("the count of fresh token hashes makes no sense: it begins anew");
    let taken = fresh(connection).take(i64::MIN, usize::MAX)?;
    old(connection).add(&taken.pairs)?;
    run(connection, "DELETE FROM token_leaves_fresh_count", ())?;
    let sql = "INSERT INTO token_leaves_fresh_count (count, moved_from) VALUES (0, ?1)";
    run(connection, sql, [i64::MIN]).map(drop)
}

fn fresh(connection: &Connection) -> Leaves<'_> {
    Leaves { connection, table: "token_leaves_fresh" }
}

fn old(connection: &Connection) -> Leaves<'_> {
    Leaves { connection, table: "token_leaves" }
}

fn change_count(connection: &Connection, change: i64) -> Done<i64> {
    // One row and no RETURNING: an update of many rows, or one that returns some, writes a journal of its own beside the transaction's,
    // which costs more than both statements.
    run(connection, "UPDATE token_leaves_fresh_count SET count = count + ?1 WHERE rowid = 1", [change])?;
    let sql = "SELECT count FROM token_leaves_fresh_count";
    let count = one(connection, sql, (), |row| row.get(0))?;
    count.ok_or_else(|| damaged("no count of fresh token hashes"))
}

/// Moves the rows of files up to version 5, one for each hash of 64 bits, into leaves.
pub(in crate::sqlite) fn adopt_rows(connection: &Connection) -> Done<()> {
    for table in ["token_hashes", "token_hashes_fresh"] {
        let sql =
            format!("SELECT hash, key FROM {table} WHERE (hash, key) > (?1, ?2) ORDER BY hash, key LIMIT ?3");
        let mut last = (i64::MIN, i64::MIN);
        loop {
            let params = [last.0, last.1, limit(ROOM.stretch_count)];
            let rows: Vec<(i64, i64)> = all(connection, &sql, params, |row| Ok((row.get(0)?, row.get(1)?)))?;
            let Some(end) = rows.last() else { break };
            last = *end;
            // Equal hashes, once cut, are in no order of devices.
            let mut pairs: Vec<HashPair> =
                rows.into_iter().map(|(hash, key)| pair((cut(hash), key))).collect();
            pairs.sort_unstable();
            old(connection).add(&pairs)?;
        }
        connection.execute_batch(&format!("DROP TABLE {table}"))?;
    }
    Ok(connection.execute_batch("DROP TABLE token_hashes_fresh_count")?)
}

#[cfg(test)]
mod tests;
