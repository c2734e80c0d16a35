//! Which devices of a chunk have been given a newer message with the same collapse key.
//!
//! Newer is what has a later [`place`](stentor_core::message::place): nearly always what has a larger id, otherwise what was
//! accepted earlier to be due later. It takes the place of an older message where it waits, is on its way, or may have arrived.

use std::collections::BTreeMap;

use rusqlite::{Connection, Params, Row, params};
use stentor_core::delivery::{DeliveryState, Record, decode_records};
use stentor_core::id::{DeviceId, instant_of};
use stentor_core::time::Timestamp;

use super::chunks::{self, Chunk, ChunkState, LEVELS};
use crate::sqlite::fault::{Done, damaged};
use crate::sqlite::query::{all, exists};
use crate::sqlite::row::{code, int};
use stentor_core::ledger::ZERO_TTL_GRACE;

/// Returns, for each device, whether it was; an empty list when none was.
///
/// Two looks at indexes say in most cases that there is no newer message. Otherwise chunks whose span overlaps are
/// found level by level: a span of level n is narrower than 2^n, so its last device is not far off.
pub(super) fn collapsed(
    connection: &Connection,
    chunk: &Chunk,
    devices: &[DeviceId],
    now: Timestamp,
) -> Done<Vec<bool>> {
    let Some(key) = &chunk.collapse_key else { return Ok(Vec::new()) };
    let overtaken = is_overtaken(connection, chunk, key, now)?;
    if !overtaken && !has_newer(connection, chunk, key)? {
        return Ok(Vec::new());
    }
    let mut marks = vec![false; devices.len()];
    for level in 0..LEVELS {
        for newer in overlapping(connection, chunk, (key, overtaken), level, now)? {
            mark(&mut marks, devices, &newer.replaced(connection, chunk, now)?);
        }
    }
    Ok(marks)
}

/// Returns whether there is a message with an id beyond the chunk's place.
fn has_newer(connection: &Connection, chunk: &Chunk, key: &str) -> Done<bool> {
    let sql = "SELECT 1 FROM campaigns WHERE app = ?1 AND collapse_key = ?2 AND id > ?3";
    exists(connection, sql, params![int(chunk.lane.app.raw()), key, int(chunk.place)])
}

/// Returns whether a message that was accepted before that is due by now, and was due later than the chunk's.
fn is_overtaken(connection: &Connection, chunk: &Chunk, key: &str, now: Timestamp) -> Done<bool> {
    let sql = "SELECT 1 FROM campaigns WHERE app = ?1 AND collapse_key = ?2 AND due_at > created_at
        AND due_at BETWEEN ?3 AND ?4 AND +id <= ?5 AND (due_at > ?3 OR +id > ?6)";
    let due_at = instant_of(chunk.place).as_millis();
    let (place, id) = (int(chunk.place), int(chunk.campaign.raw()));
    exists(connection, sql, params![int(chunk.lane.app.raw()), key, due_at, now.as_millis(), place, id])
}

/// A chunk of a newer message.
struct Newer {
    message: i64,
    state: ChunkState,
    /// Whether its ttl is over.
    is_over: bool,
    devices: Vec<DeviceId>,
    /// What became of each, once that is written.
    records: Vec<Record>,
}

/// What a newer message is to a device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It waits, is on its way, or may have arrived.
    Replaces,
    /// It was given up before anything was sent.
    Over,
    /// It goes on in another chunk.
    GoesOn,
}

const SELECT: &str =
    "SELECT c.message, c.state, k.expires_at <= ?1 AND (k.expires_at > k.due_at OR k.expires_at + ?2 <= ?1),
    c.count, c.devices, c.records FROM chunks c CROSS JOIN campaigns k ON k.id = c.message";

fn overlapping(
    connection: &Connection,
    chunk: &Chunk,
    (key, overtaken): (&str, bool),
    level: u32,
    now: Timestamp,
) -> Done<Vec<Newer>> {
    let sql = format!(
        "{SELECT} WHERE c.parent IS NULL AND c.fleet = ?3 AND c.level = ?4 AND c.last BETWEEN ?5 AND ?6
        AND c.first <= ?7 AND (c.message > ?8 OR ?9) AND k.collapse_key = ?10 AND k.state <> 3
        AND (c.message > ?8 OR k.due_at > k.created_at AND (k.due_at > ?11 OR k.due_at = ?11 AND c.message > ?12))
        AND NOT EXISTS (SELECT 1 FROM ledgers l WHERE l.campaign = c.message AND l.provider = ?13 AND l.stop_reason IS NOT NULL)"
    );
    let (first, last) = (int(chunk.first.raw()), int(chunk.last.raw()));
    let values = params![
        now.as_millis(),
        grace_ms(),
        int(chunk.fleet.no),
        level,
        first,
        last.saturating_add((1 << level) - 1),
        last,
        int(chunk.place),
        overtaken,
        key,
        instant_of(chunk.place).as_millis(),
        int(chunk.campaign.raw()),
        chunk.fleet.provider.code(),
    ];
    those_that_can_be_read(connection, &sql, values)
}

impl Newer {
    /// Lists the devices for which it takes the place of what is older, in order.
    fn replaced(&self, connection: &Connection, chunk: &Chunk, now: Timestamp) -> Done<Vec<DeviceId>> {
        let standings = self.standings();
        let those = |wanted: Standing| {
            let those = standings.iter().filter(move |(_, standing)| *standing == wanted);
            those.map(|(device, _)| *device)
        };
        let mut replaced: Vec<DeviceId> = those(Standing::Replaces).collect();
        let going_on: Vec<DeviceId> = those(Standing::GoesOn).collect();
        if let (Some(first), Some(last)) = (going_on.first(), going_on.last()) {
            let mut latest: BTreeMap<_, _> =
                going_on.iter().map(|device| (*device, Standing::Over)).collect();
            for child in self.children(connection, chunk, (*first, *last), now)? {
                for (device, standing) in child.standings() {
                    latest.entry(device).and_modify(|latest| *latest = standing);
                }
            }
            let still = latest.into_iter().filter(|(_, standing)| *standing == Standing::Replaces);
            replaced.extend(still.map(|(device, _)| device));
            replaced.sort_unstable();
        }
        Ok(replaced)
    }

    /// Lists the chunks in which deliveries of it went on, in the order in which they were made.
    fn children(
        &self,
        connection: &Connection,
        chunk: &Chunk,
        (first, last): (DeviceId, DeviceId),
        now: Timestamp,
    ) -> Done<Vec<Self>> {
        let sql = format!(
            "{SELECT} WHERE c.message = ?3 AND c.fleet = ?4 AND c.first <= ?6 AND c.last >= ?5 AND c.parent IS NOT NULL
            ORDER BY c.id"
        );
        let span = (int(first.raw()), int(last.raw()));
        let values = params![now.as_millis(), grace_ms(), self.message, int(chunk.fleet.no), span.0, span.1];
        those_that_can_be_read(connection, &sql, values)
    }

    fn standings(&self) -> Vec<(DeviceId, Standing)> {
        let all = |standing| self.devices.iter().map(|device| (*device, standing)).collect();
        match self.state {
            ChunkState::Queued if self.is_over => all(Standing::Over),
            ChunkState::Queued | ChunkState::Leased => all(Standing::Replaces),
            ChunkState::Settled | ChunkState::SetAside => {
                let ends = self.devices.iter().zip(&self.records);
                ends.map(|(device, record)| (*device, standing(*record))).collect()
            }
        }
    }
}

fn standing(record: Record) -> Standing {
    match record.state() {
        DeliveryState::Queued => Standing::GoesOn,
        DeliveryState::Sending | DeliveryState::Accepted => Standing::Replaces,
        _ if record.is_ambiguous() => Standing::Replaces,
        _ => Standing::Over,
    }
}

/// Lists newer chunks. One that cannot be read will be sent to nobody, and is no reason to doubt an older one.
fn those_that_can_be_read(connection: &Connection, sql: &str, values: impl Params) -> Done<Vec<Newer>> {
    let found = all(connection, sql, values, |row: &Row<'_>| Ok(read(row).ok()))?;
    Ok(found.into_iter().flatten().collect())
}

fn read(row: &Row<'_>) -> Done<Newer> {
    let count: u32 = row.get(3)?;
    let bytes = row.get_ref(5)?.as_blob_or_null().map_err(|_| damaged("records that are no bytes"))?;
    let records = bytes.and_then(|bytes| decode_records(bytes, count as usize));
    Ok(Newer {
        message: row.get(0)?,
        state: code(row, 1, ChunkState::from_code)?,
        is_over: row.get(2)?,
        devices: chunks::decode(row, 4).unwrap_or_default(),
        records: records.unwrap_or_default(),
    })
}

fn grace_ms() -> i64 {
    ZERO_TTL_GRACE.as_secs().cast_signed() * 1_000
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
