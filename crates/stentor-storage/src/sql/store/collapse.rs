//! The devices of a chunk that have a newer message with the same collapse key.
//!
//! A message is newer if it has a later [`place`](stentor_core::message::place). Nearly always it has a larger id; otherwise it was
//! accepted earlier and is due later. It replaces an older message if it waits, is on its way, or may have arrived.

use std::collections::BTreeMap;

use stentor_core::campaign::CampaignState;
use stentor_core::chunk::{ChunkState, TokenList};
use stentor_core::delivery::{Record, decode_records};
use stentor_core::id::{AppId, DeviceId, MessageId, instant_of};
use stentor_core::ledger::{Precedence, is_too_late, may_replace};
use stentor_core::message::place;
use stentor_core::name::CollapseKey;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::SendDecision;
use stentor_core::time::Timestamp;

use super::chunks::{self, ChunkRow, LEVELS};
use crate::sql::{
    Connection, Done, Params, Row, all, code, exists, int, maybe_code, number, one, params, time,
};

/// Returns a mark for each device that has a newer message; an empty list if no device has one.
///
/// Two index lookups show in most cases that there is no newer message. Otherwise chunks whose span overlaps are
/// found level by level: a span of level n is narrower than 2^n, so its last device is not far off.
pub(crate) fn collapsed(
    connection: &Connection,
    chunk: &ChunkRow,
    devices: &[DeviceId],
    now: Timestamp,
) -> Done<Vec<bool>> {
    let Some(key) = &chunk.collapse_key else { return Ok(Vec::new()) };
    let overtaken = is_overtaken(connection, chunk, key, now)?;
    // Usually there is no newer message, and no chunk needs to be read.
    if !overtaken && !has_newer(connection, chunk, key)? {
        return Ok(Vec::new());
    }
    let mut marks = vec![false; devices.len()];
    for level in 0..LEVELS {
        for newer in overlapping(connection, chunk, key, overtaken, level, now)? {
            mark(&mut marks, devices, &newer.replaced(connection, chunk, now)?);
        }
    }
    Ok(marks)
}

/// Returns true if there is a message with an id beyond the chunk's place.
fn has_newer(connection: &Connection, chunk: &ChunkRow, key: &str) -> Done<bool> {
    let sql = "SELECT 1 FROM campaigns WHERE app = ?1 AND collapse_key = ?2 AND id > ?3";
    exists(connection, sql, params![int(chunk.lane.app.raw()), key, int(chunk.place)])
}

/// Returns the newest message of an app with a key.
pub(crate) fn newest(connection: &Connection, app: AppId, key: &CollapseKey) -> Done<Option<MessageId>> {
    let sql = "SELECT id FROM campaigns WHERE app = ?1 AND collapse_key = ?2 ORDER BY id DESC LIMIT 1";
    let id = one(connection, sql, params![int(app.raw()), key.as_str()], |row| number(row, 0))?;
    Ok(id.map(MessageId::from_raw))
}

/// Returns true if an earlier accepted message is due by now, and was due later than the chunk's message.
fn is_overtaken(connection: &Connection, chunk: &ChunkRow, key: &str, now: Timestamp) -> Done<bool> {
    let no_index = connection.dialect().without_index;
    let sql = format!(
        "SELECT 1 FROM campaigns WHERE app = ?1 AND collapse_key = ?2 AND due_at > created_at
        AND due_at BETWEEN ?3 AND ?4 AND {no_index}id <= ?5 AND (due_at > ?3 OR {no_index}id > ?6)"
    );
    let due_at = instant_of(chunk.place).as_millis();
    let (place, id) = (int(chunk.place), int(chunk.campaign.raw()));
    exists(connection, &sql, params![int(chunk.lane.app.raw()), key, due_at, now.as_millis(), place, id])
}

/// A chunk of another message with the same collapse key.
struct OtherChunk {
    message: u64,
    place: u64,
    state: ChunkState,
    /// True if its message may replace others at the provider.
    may_replace: bool,
    /// True if its message is too late.
    is_over: bool,
    devices: Vec<DeviceId>,
    /// The outcome for each device, once it is written.
    records: Vec<Record>,
}

fn select(connection: &Connection) -> String {
    let join = connection.dialect().join_in_order;
    format!(
        "SELECT c.message, c.state, k.state, k.created_at, k.due_at, k.expires_at, l.stop_reason, c.count,
        c.devices, c.records FROM chunks c {join} campaigns k ON k.id = c.message
        LEFT JOIN ledgers l ON l.campaign = c.message AND l.provider = ?1"
    )
}

/// Lists chunks, of one level, of newer messages that may replace the chunk's. Older messages matter only if they were overtaken.
fn overlapping(
    connection: &Connection,
    chunk: &ChunkRow,
    key: &str,
    overtaken: bool,
    level: u32,
    now: Timestamp,
) -> Done<Vec<OtherChunk>> {
    // Reads the chunks of the audience; those in which deliveries continued are found from them.
    let select = select(connection);
    let sql = format!(
        "{select} WHERE c.parent IS NULL AND c.fleet = ?2 AND c.level = ?3 AND c.last BETWEEN ?4 AND ?5
        AND c.first <= ?6 AND (c.message > ?7 OR ?8) AND k.collapse_key = ?9"
    );
    let (first, last) = (int(chunk.first.raw()), int(chunk.last.raw()));
    // A span of this level that begins before our last device ends within its own width behind it.
    let values = params![
        chunk.fleet.provider.code(),
        int(chunk.fleet.no),
        level,
        first,
        last.saturating_add((1 << level) - 1),
        last,
        int(chunk.place),
        overtaken,
        key,
    ];
    let own = (chunk.place, chunk.campaign.raw());
    let others = those_that_can_be_read(connection, &sql, values, now)?;
    Ok(others.into_iter().filter(|other| other.may_replace && (other.place, other.message) > own).collect())
}

impl OtherChunk {
    /// Lists, in order, the devices for which this chunk replaces older messages.
    fn replaced(&self, connection: &Connection, chunk: &ChunkRow, now: Timestamp) -> Done<Vec<DeviceId>> {
        let found = self.precedences();
        let those = |wanted: Precedence| {
            let those = found.iter().filter(move |(_, precedence)| *precedence == wanted);
            those.map(|(device, _)| *device)
        };
        let mut replaced: Vec<DeviceId> = those(Precedence::Replaces).collect();
        let going_on: Vec<DeviceId> = those(Precedence::GoesOn).collect();
        if let (Some(first), Some(last)) = (going_on.first(), going_on.last()) {
            // If a device's delivery continued in no readable chunk, it is over.
            let mut latest: BTreeMap<_, _> =
                going_on.iter().map(|device| (*device, Precedence::Over)).collect();
            // In order of creation, so that the latest record about a device counts.
            for child in self.children(connection, chunk, *first, *last, now)? {
                for (device, precedence) in child.precedences() {
                    latest.entry(device).and_modify(|latest| *latest = precedence);
                }
            }
            let still = latest.into_iter().filter(|(_, precedence)| *precedence == Precedence::Replaces);
            replaced.extend(still.map(|(device, _)| device));
            replaced.sort_unstable();
        }
        Ok(replaced)
    }

    /// Lists the chunks in which its deliveries continued, in order of creation.
    fn children(
        &self,
        connection: &Connection,
        chunk: &ChunkRow,
        first: DeviceId,
        last: DeviceId,
        now: Timestamp,
    ) -> Done<Vec<Self>> {
        let select = select(connection);
        let sql = format!(
            "{select} WHERE c.message = ?2 AND c.fleet = ?3 AND c.first <= ?5 AND c.last >= ?4 AND c.parent IS NOT NULL
            ORDER BY c.id"
        );
        let (provider, fleet) = (chunk.fleet.provider.code(), int(chunk.fleet.no));
        let values = params![provider, int(self.message), fleet, int(first.raw()), int(last.raw())];
        those_that_can_be_read(connection, &sql, values, now)
    }

    fn precedences(&self) -> Vec<(DeviceId, Precedence)> {
        if let Some(of_all) = Precedence::of_chunk(self.state, self.is_over) {
            return self.devices.iter().map(|device| (*device, of_all)).collect();
        }
        let ends = self.devices.iter().zip(&self.records);
        ends.map(|(device, record)| (*device, Precedence::of_record(*record))).collect()
    }
}

/// Lists other chunks. A chunk that cannot be read will not be sent, and is no reason to withhold an older one.
fn those_that_can_be_read<'v>(
    connection: &Connection,
    sql: &str,
    values: impl Params<'v>,
    now: Timestamp,
) -> Done<Vec<OtherChunk>> {
    let found = all(connection, sql, values, |row: &Row<'_>| Ok(read(row, now).ok()))?;
    Ok(found.into_iter().flatten().collect())
}

fn read(row: &Row<'_>, now: Timestamp) -> Done<OtherChunk> {
    let (message, count) = (number(row, 0)?, row.get::<u32>(7)?);
    let (due_at, stop) = (time(row, 4)?, maybe_code(row, 6, Reason::from_code)?);
    let records = row.maybe_bytes(9)?.and_then(|bytes| decode_records(bytes, count as usize));
    Ok(OtherChunk {
        message,
        place: place(MessageId::from_raw(message), time(row, 3)?, due_at),
        state: code(row, 1, ChunkState::from_code)?,
        may_replace: may_replace(code(row, 2, CampaignState::from_code)?, stop),
        is_over: is_too_late(due_at, time(row, 5)?, now),
        // Without its devices it replaces no delivery.
        devices: chunks::decode(row, 8).unwrap_or_default(),
        records: records.unwrap_or_default(),
    })
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

/// Finds out about each device: gone, collapsed, or its token. `tokens` calls back with those of unretired devices in order of id.
pub(crate) fn decide(
    devices: &[DeviceId],
    collapsed: &[bool],
    tokens: impl FnOnce(&mut dyn FnMut(DeviceId, &str)) -> Done<()>,
) -> Done<(Vec<SendDecision>, TokenList)> {
    // A device not found among the unretired ones is gone.
    let mut decisions = vec![SendDecision::Gone; devices.len()];
    let mut list = TokenList::with_capacity(devices.len());
    let mut at = 0;
    tokens(&mut |device, token| {
        while devices.get(at).is_some_and(|one| *one < device) {
            at += 1;
        }
        if devices.get(at) != Some(&device) {
            return;
        }
        if collapsed.get(at) == Some(&true) {
            decisions[at] = SendDecision::Collapsed;
        } else {
            decisions[at] = SendDecision::Send;
            list.push(token);
        }
    })?;
    Ok((decisions, list))
}
