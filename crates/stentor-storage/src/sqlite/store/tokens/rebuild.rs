//! Rebuilding of token hashes that were lost with a damaged leaf, from the rows of the devices.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;
use stentor_core::device::PushToken;

use super::{fresh, hash, holder_by_hash, note, old, pair, with_hashes};
use crate::sql::store::removal;
use crate::sql::{Done, Portion, Row, all, attempt, limit, one, text};
use crate::sqlite::store::app_providers::{self, AppProvider, fleet_of};
use crate::sqlite::store::leftovers::{Leftover, LeftoverKind};

/// Devices looked at with one statement.
const AT_ONCE_COUNT: usize = 512;
/// The leftover that walks over the devices.
const WALK: i64 = 1;

/// A device with a readable token and fleet.
struct ReadableDevice {
    key: i64,
    fleet: AppProvider,
    token: PushToken,
    hash: i64,
}

/// Checks the leaves, or continues with the devices within the portion; returns true when that is done.
pub(in crate::sqlite::store) fn go_on(
    connection: &Connection,
    left: &mut Leftover,
    portion: &Portion<'_>,
) -> Done<bool> {
    if left.no != WALK {
        fresh(connection).mend()?;
        old(connection).mend()?;
        // The walk over the devices begins when all leaves can be read.
        return Leftover { cursor: i64::MIN, ..Leftover::of(LeftoverKind::Hashes, WALK) }
            .note(connection)
            .map(|()| true);
    }
    while !portion.is_over() {
        let Some(last) = walk(connection, left.cursor)? else {
            tracing::warn!("all token hashes are found again");
            return Ok(true);
        };
        left.cursor = last;
        portion.note_progress();
    }
    Ok(false)
}

/// Adds the missing hashes of the next devices; returns the last device, or `None` if there is none.
fn walk(connection: &Connection, after: i64) -> Done<Option<i64>> {
    let sql = "SELECT key, token FROM devices WHERE key > ?1 ORDER BY key LIMIT ?2";
    let read = |row: &Row<'_>| Ok((row.get::<i64>(0)?, text(row, 1, PushToken::new).ok()));
    let devices = all(connection, sql, [after, limit(AT_ONCE_COUNT)], read)?;
    let last = devices.last().map(|(key, _)| *key);
    let mut fleets = BTreeMap::new();
    let mut known = Vec::with_capacity(devices.len());
    for (key, token) in devices {
        let no = fleet_of(key);
        // A device of an app that is gone needs no hash.
        let fleet = *fleets.entry(no).or_insert_with(|| app_providers::by_no(connection, no).ok());
        if let (Some(fleet), Some(token)) = (fleet, token) {
            known.push(ReadableDevice { key, fleet, hash: hash(fleet.app, fleet.provider, &token), token });
        }
    }
    // Sorted by hash, because neighbours are in one leaf.
    known.sort_unstable_by_key(|device| device.hash);
    let mut hashes: Vec<i64> = known.iter().map(|device| device.hash).collect();
    hashes.dedup();
    let found: BTreeSet<_> = with_hashes(connection, &hashes)?.into_iter().collect();
    known.retain(|device| !found.contains(&pair((device.hash, device.key))));
    let mut lost = Vec::with_capacity(known.len());
    for device in known {
        if !is_replaced(connection, &device)? {
            lost.push((device.hash, device.key));
        }
    }
    note(connection, lost)?;
    Ok(last)
}

/// Removes a device if its token was registered again while its hash was lost: the newer device replaces it.
fn is_replaced(connection: &Connection, device: &ReadableDevice) -> Done<bool> {
    let Some(newer) = holder_by_hash(connection, device.fleet, device.hash, &device.token)? else {
        return Ok(false);
    };
    let sql = "SELECT count(*) FROM devices WHERE key IN (?1, ?2) AND listed";
    let listed: Option<i64> = one(connection, sql, [device.key, newer], |row| row.get(0))?;
    if newer <= device.key || listed != Some(2) {
        return Ok(false);
    }
    Ok(attempt(connection, || removal::device(connection, device.fleet, device.key))?.is_ok())
}
