//! The deliveries of a device, attempt by attempt.

use std::collections::BTreeSet;

use stentor_core::chunk::ChunkState;
use stentor_core::delivery::{DeliveryState, Record, decode_records};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId, DeviceId, MessageId};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{AttemptRecord, ChunkRecords, Page};

use super::app_providers::{self, AppProvider};
use super::chunks::{self, LEVELS};
use crate::sql::{Connection, Done, Row, code, damaged, int, maybe_time, number, params, readable, time};

/// Lists the attempts of one message at a device, in order.
pub(crate) fn of_message(
    connection: &Connection,
    fleets: &[AppProvider],
    message: MessageId,
    device: DeviceId,
) -> Done<Vec<AttemptRecord>> {
    let mut attempts = Vec::new();
    for fleet in fleets {
        let sql =
            "SELECT id, attempt, created_at, due_at, changed_at, state, ambiguous, count, devices, records
            FROM chunks WHERE message = ?1 AND fleet = ?2 AND first <= ?3 AND last >= ?3 ORDER BY id";
        let values = params![int(message.raw()), int(fleet.no), int(device.raw())];
        let read = |row: &Row<'_>| attempt(row, *fleet, message, device);
        let (found, _) = readable(connection, "chunks", (sql, values), usize::MAX, read)?;
        attempts.extend(found.into_iter().flatten());
    }
    attempts.sort_by_key(|attempt: &AttemptRecord| attempt.chunk);
    Ok(attempts)
}

/// Lists chunks of a message with their records, in order, beginning at `from`.
pub(crate) fn records(
    connection: &Connection,
    message: MessageId,
    from: ChunkId,
    max: usize,
) -> Done<Vec<ChunkRecords>> {
    // The numbers come first, from an index: otherwise whole chunks would be sorted.
    let sql = "SELECT c.id, c.attempt, c.created_at, c.due_at, c.changed_at, c.state, c.ambiguous, c.count, c.devices, c.records,
        f.provider FROM chunks c JOIN fleets f ON f.no = c.fleet
        WHERE c.id IN (SELECT id FROM chunks WHERE message = ?1 AND id >= ?2) ORDER BY c.id";
    let values = params![int(message.raw()), int(from.raw())];
    Ok(readable(connection, "chunks", (sql, values), max, chunk_records)?.0)
}

/// Lists a device's attempts over the newest messages below the page's cursor; the limit counts messages.
pub(crate) fn of_device(
    connection: &Connection,
    app: AppId,
    device: DeviceId,
    page: Page,
) -> Done<Vec<AttemptRecord>> {
    let below = if page.after == 0 { i64::MAX } else { int(page.after) };
    let fleets = app_providers::of_app(connection, app)?;
    let mut messages = BTreeSet::new();
    for fleet in &fleets {
        messages.extend(expanded_to(connection, *fleet, device, below)?);
    }
    let mut attempts = Vec::new();
    let mut shown = 0;
    for message in messages.into_iter().rev() {
        if shown == page.limit {
            break;
        }
        let found = of_message(connection, &fleets, message, device)?;
        // A span may hold the number of a device that is not in the chunk: such a message is not shown, and takes no place.
        shown += usize::from(!found.is_empty());
        attempts.extend(found);
    }
    Ok(attempts)
}

/// Finds messages with a chunk whose span contains the device, level by level.
fn expanded_to(
    connection: &Connection,
    fleet: AppProvider,
    device: DeviceId,
    below: i64,
) -> Done<Vec<MessageId>> {
    let sql = "SELECT message FROM chunks WHERE parent IS NULL AND fleet = ?1 AND level = ?2
        AND last BETWEEN ?3 AND ?4 AND message < ?5 AND first <= ?3 ORDER BY message";
    let id = int(device.raw());
    let mut messages = Vec::new();
    for level in 0..LEVELS {
        let farthest = id.saturating_add((1 << level) - 1);
        let values = params![int(fleet.no), level, id, farthest, below];
        let read = |row: &Row<'_>| Ok(MessageId::from_raw(number(row, 0)?));
        messages.extend(readable(connection, "chunks", (sql, values), usize::MAX, read)?.0);
    }
    Ok(messages)
}

fn attempt(
    row: &Row<'_>,
    fleet: AppProvider,
    message: MessageId,
    device: DeviceId,
) -> Done<Option<AttemptRecord>> {
    let devices = match chunks::decode(row, 8) {
        // The devices of a quarantined chunk may be unreadable.
        Err(_) if state(row)? == ChunkState::Quarantined => return Ok(None),
        other => other?,
    };
    let Ok(position) = devices.binary_search(&device) else { return Ok(None) };
    Ok(Some(AttemptRecord {
        message,
        provider: fleet.provider,
        chunk: ChunkId::from_raw(number(row, 0)?),
        attempt: row.get(1)?,
        created_at: time(row, 2)?,
        // A delivery without an event is shown at its due time.
        at: maybe_time(row, 4)?.unwrap_or(time(row, 3)?),
        record: record(row, position, devices.len())?,
    }))
}

fn chunk_records(row: &Row<'_>) -> Done<ChunkRecords> {
    let (devices, records) = match chunks::decode(row, 8) {
        // The devices of a quarantined chunk may be unreadable.
        Err(_) if state(row)? == ChunkState::Quarantined => (Vec::new(), None),
        devices => {
            let devices = devices?;
            let records = settled(row, devices.len())?;
            (devices, records)
        }
    };
    Ok(ChunkRecords {
        chunk: ChunkId::from_raw(number(row, 0)?),
        provider: code(row, 10, ProviderKind::from_code)?,
        attempt: row.get(1)?,
        created_at: time(row, 2)?,
        at: maybe_time(row, 4)?.unwrap_or(time(row, 3)?),
        devices,
        records,
        unsettled: unsettled(row)?,
    })
}

fn state(row: &Row<'_>) -> Done<ChunkState> {
    code(row, 5, ChunkState::from_code)
}

fn record(row: &Row<'_>, position: usize, count: usize) -> Done<Record> {
    let Some(records) = settled(row, count)? else { return unsettled(row) };
    records.get(position).copied().ok_or_else(|| damaged("a chunk that miscounts its records"))
}

/// Returns the records of a chunk that is settled.
fn settled(row: &Row<'_>, count: usize) -> Done<Option<Vec<Record>>> {
    let Some(bytes) = row.maybe_bytes(9)? else {
        return Ok(None);
    };
    decode_records(bytes, count).map(Some).ok_or_else(|| damaged("records that cannot be read"))
}

/// Returns the record that holds for each device of an unsettled chunk.
fn unsettled(row: &Row<'_>) -> Done<Record> {
    let is_leased = state(row)? == ChunkState::Leased;
    let state = if is_leased { DeliveryState::Sending } else { DeliveryState::Queued };
    Ok(Record::new(state, Reason::None, row.get(6)?))
}
