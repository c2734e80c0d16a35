//! Which devices of a chunk have been given a newer message with the same collapse key.

use rusqlite::{Connection, Row, params};
use stentor_core::id::DeviceId;

use super::chunks::{self, Chunk, LEVELS};
use crate::sqlite::fault::Done;
use crate::sqlite::query::{all, exists};
use crate::sqlite::row::int;

/// Gives, for each device, whether it was; an empty list when none was.
///
/// One look at an index says in most cases that there is no newer message. Otherwise chunks whose span overlaps are
/// found level by level: a span of level n is narrower than 2^n, so its last device is not far off.
pub(super) fn collapsed(connection: &Connection, chunk: &Chunk, devices: &[DeviceId]) -> Done<Vec<bool>> {
    let Some(key) = &chunk.collapse_key else { return Ok(Vec::new()) };
    if !has_newer(connection, chunk, key)? {
        return Ok(Vec::new());
    }
    let mut marks = vec![false; devices.len()];
    for level in 0..LEVELS {
        for newer in overlapping(connection, chunk, key, level)? {
            mark(&mut marks, devices, &newer);
        }
    }
    Ok(marks)
}

fn has_newer(connection: &Connection, chunk: &Chunk, key: &str) -> Done<bool> {
    let sql = "SELECT 1 FROM campaigns WHERE app = ?1 AND collapse_key = ?2 AND id > ?3";
    exists(connection, sql, params![int(chunk.lane.app.raw()), key, int(chunk.campaign.raw())])
}

fn overlapping(connection: &Connection, chunk: &Chunk, key: &str, level: u32) -> Done<Vec<Vec<DeviceId>>> {
    let sql = "SELECT c.devices FROM chunks c CROSS JOIN campaigns k ON k.id = c.message
        WHERE c.parent IS NULL AND c.fleet = ?1 AND c.level = ?2 AND c.last BETWEEN ?3 AND ?4 AND c.message > ?5
        AND c.first <= ?6 AND k.collapse_key = ?7 AND k.state <> 3
        AND NOT EXISTS (SELECT 1 FROM ledgers l WHERE l.campaign = c.message AND l.provider = ?8 AND l.stop_reason IS NOT NULL)";
    let (first, last) = (int(chunk.first.raw()), int(chunk.last.raw()));
    let farthest = last.saturating_add((1 << level) - 1);
    let provider = chunk.fleet.provider.code();
    let values =
        params![int(chunk.fleet.no), level, first, farthest, int(chunk.campaign.raw()), last, key, provider];
    // A newer chunk that cannot be read will be sent to nobody, and is no reason to doubt this one.
    all(connection, sql, values, |row: &Row<'_>| Ok(chunks::decode(row, 0).unwrap_or_default()))
}

/// Walks two ascending lists side by side.
fn mark(marks: &mut [bool], devices: &[DeviceId], newer: &[DeviceId]) {
    let mut rest = newer;
    for (mark, device) in marks.iter_mut().zip(devices) {
        let skipped = rest.partition_point(|other| other < device);
        rest = &rest[skipped..];
        *mark |= rest.first() == Some(device);
    }
}
