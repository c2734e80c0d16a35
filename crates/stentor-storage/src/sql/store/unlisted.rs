//! Unlisted devices, which are known only by a message to their token. They are removed once no stored message counts them.

use std::time::Duration;

use stentor_core::chunk::TrafficClass;
use stentor_core::id::DeviceId;
use stentor_core::time::Timestamp;

use super::app_providers::{self, device_of, fleet_of};
use super::chunks::{self, LEVELS};
use super::removal;
use crate::sql::{Connection, Done, Portion, Row, all, exists, int, limit, params, time};

/// Such devices that one look goes over.
const WALKED_MAX_COUNT: usize = 2_048;
/// Old ones that one look finds.
const FOUND_MAX_COUNT: usize = 128;

/// A scan stops at the next device after this time.
const LOOK: Duration = Duration::from_secs(1);

/// Finds old unlisted devices after a key to which no stored message was sent. Returns them and the key from which to continue.
pub(crate) fn old(connection: &Connection, before: Timestamp, after: i64) -> Done<(Vec<i64>, Option<i64>)> {
    let sql = "SELECT key, registered_at FROM devices WHERE NOT listed AND key > ?1 ORDER BY key LIMIT ?2";
    let read = |row: &Row<'_>| Ok((row.get::<i64>(0)?, time(row, 1)?));
    let walked = all(connection, sql, [after, limit(WALKED_MAX_COUNT)], read)?;
    let mut found = Vec::new();
    let portion = Portion::of(connection, u64::MAX, LOOK);
    for (key, made_at) in &walked {
        if *made_at < before && !is_counted(connection, *key)? {
            found.push(*key);
        }
        portion.note_progress();
        if found.len() == FOUND_MAX_COUNT || portion.is_over() {
            return Ok((found, Some(*key)));
        }
    }
    let last = walked.last().filter(|_| walked.len() == WALKED_MAX_COUNT);
    Ok((found, last.map(|(key, _)| *key)))
}

/// Removes those that are still unlisted and not counted by a message, within one portion; returns their number.
pub(crate) fn forget(connection: &Connection, keys: &[i64]) -> Done<u64> {
    let portion = Portion::begin(connection);
    let mut gone = 0;
    for key in keys {
        if portion.is_over() {
            break;
        }
        portion.note_progress();
        let is_unlisted = exists(connection, "SELECT 1 FROM devices WHERE key = ?1 AND NOT listed", [*key])?;
        // Without its fleet its app is gone, and the device goes with that.
        let sql = "SELECT 1 FROM fleets WHERE no = ?1";
        if is_unlisted && exists(connection, sql, [int(fleet_of(*key))])? && !is_counted(connection, *key)? {
            removal::device(connection, app_providers::by_no(connection, fleet_of(*key))?, *key)?;
            gone += 1;
        }
    }
    Ok(gone)
}

/// Returns true if a stored message was sent to the device. Only messages that name their devices can have been.
fn is_counted(connection: &Connection, key: i64) -> Done<bool> {
    let (fleet, device) = (int(fleet_of(key)), device_of(key));
    // A message to it alone is the usual case, and needs no list to be read.
    let alone = "SELECT 1 FROM chunks WHERE parent IS NULL AND fleet = ?1 AND level = 0 AND last = ?2";
    if exists(connection, alone, [fleet, int(device.raw())])? {
        return Ok(true);
    }
    for level in 1..LEVELS {
        if is_among(connection, fleet, level, device)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_among(connection: &Connection, fleet: i64, level: u32, device: DeviceId) -> Done<bool> {
    let join = connection.dialect().join_in_order;
    let sql = format!(
        "SELECT c.devices FROM chunks c {join} campaigns k ON k.id = c.message WHERE c.parent IS NULL
        AND c.fleet = ?1 AND c.level = ?2 AND c.last BETWEEN ?3 AND ?4 AND c.first <= ?3 AND k.class = ?5"
    );
    let id = int(device.raw());
    let farthest = id.saturating_add((1 << level) - 1);
    let values = params![fleet, level, id, farthest, TrafficClass::Urgent.code()];
    // The devices of an unreadable chunk are not known, so the chunk counts.
    let has = |row: &Row<'_>| {
        Ok(chunks::decode(row, 0).map_or(true, |devices| devices.binary_search(&device).is_ok()))
    };
    Ok(all(connection, &sql, values, has)?.into_iter().any(|has| has))
}
