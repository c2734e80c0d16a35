//! Rows of chunks.

use std::ops::Deref;

use rusqlite::{Connection, Row, params};
use stentor_core::campaign::CampaignState;
use stentor_core::chunk::{ChunkState, Lane, Ticket, TrafficClass, decode_devices, encode_devices};
use stentor_core::delivery::{Record, encode_records};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, CampaignId, ChunkId, DeviceId};
use stentor_core::ledger::{Chunk, NewChunk};
use stentor_core::limits::CHUNK_MAX_DEVICES;
use stentor_core::message::place;
use stentor_core::ports::store::{Lease, LeaseTerms};
use stentor_core::time::Timestamp;

use super::app_providers::AppProvider;
use super::codes::{LEASED, QUARANTINED, QUEUED};
use crate::sqlite::damage;
use crate::sqlite::fault::{Done, damaged};
use crate::sqlite::query::{all, exists, limit, one, run};
use crate::sqlite::row::{code, int, maybe_time, number, time};

/// Most levels a span can have: a device id has 40 bits.
pub(super) const LEVELS: u32 = 41;

const FIND: &str =
    "SELECT c.id, c.message, c.fleet, c.state, c.attempt, c.ambiguous, c.epoch, c.due_at, c.count, c.first,
    c.last, c.changed_at, k.app, k.state, k.class, k.started_at IS NOT NULL, k.collapse_key, f.provider,
    k.created_at, k.due_at
    FROM chunks c JOIN campaigns k ON k.id = c.message JOIN fleets f ON f.no = c.fleet WHERE c.id = ?1";

/// A chunk with what the engine alone knows of it.
#[derive(Debug)]
pub(super) struct ChunkRow {
    facts: Chunk,
    pub(super) fleet: AppProvider,
    pub(super) first: DeviceId,
    pub(super) last: DeviceId,
    pub(super) collapse_key: Option<String>,
    /// The message's place among those with its collapse key.
    pub(super) place: u64,
}

impl Deref for ChunkRow {
    type Target = Chunk;

    fn deref(&self) -> &Chunk {
        &self.facts
    }
}

impl ChunkRow {
    /// Returns what the queue carries.
    pub(super) fn ticket(&self) -> Ticket {
        Ticket { chunk: self.id, lane: self.lane, due_at: self.due_at }
    }
}

/// Keeps a new, queued chunk.
pub(super) fn insert(connection: &Connection, fleet: AppProvider, new: &NewChunk<'_>) -> Done<ChunkId> {
    let (Some(first), Some(last)) = (new.devices.first(), new.devices.last()) else {
        return Err(damaged("a chunk without devices"));
    };
    let sql = "INSERT INTO chunks (message, fleet, state, attempt, ambiguous, epoch, due_at, created_at, parent, count, first,
        last, level, devices) VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    let values = params![
        int(new.campaign.raw()),
        int(fleet.no),
        ChunkState::Queued.code(),
        new.attempt,
        new.ambiguous,
        new.due_at.as_millis(),
        new.created_at.as_millis(),
        new.parent.map(|parent| int(parent.raw())),
        limit(new.devices.len()),
        int(first.raw()),
        int(last.raw()),
        level(*first, *last),
        encode_devices(new.devices),
    ];
    run(connection, sql, values)?;
    Ok(ChunkId::from_raw(connection.last_insert_rowid().unsigned_abs()))
}

/// Returns the number of bits of a span: two spans of one level differ in width by less than a factor of two.
pub(super) const fn level(first: DeviceId, last: DeviceId) -> u32 {
    u64::BITS - last.raw().saturating_sub(first.raw()).leading_zeros()
}

/// Finds a chunk.
pub(super) fn find(connection: &Connection, id: ChunkId) -> Done<Option<ChunkRow>> {
    one(connection, FIND, [int(id.raw())], read)
}

// The lists are of ids, which an index gives: a row that cannot be read is no reason not to find the others.

/// Lists queued chunks of a campaign, at one provider or at all.
pub(super) fn queued(
    connection: &Connection,
    campaign: CampaignId,
    only: Option<ProviderKind>,
    count: usize,
) -> Done<Vec<ChunkId>> {
    let Some(provider) = only else {
        let sql =
            format!("SELECT id FROM chunks WHERE state = {QUEUED} AND message = ?1 ORDER BY id LIMIT ?2");
        return all(connection, &sql, [int(campaign.raw()), limit(count)], id);
    };
    let sql = format!(
        "SELECT id FROM chunks WHERE state = {QUEUED} AND message = ?1 AND fleet = (SELECT no FROM fleets
        WHERE app = (SELECT app FROM campaigns WHERE id = ?1) AND provider = ?2) ORDER BY id LIMIT ?3"
    );
    all(connection, &sql, params![int(campaign.raw()), provider.code(), limit(count)], id)
}

/// Lists tickets of a campaign's queued chunks after a chunk, those that can be read; fewer than `count` only at the end.
pub(super) fn tickets(
    connection: &Connection,
    campaign: CampaignId,
    mut after: ChunkId,
    count: usize,
) -> Done<Vec<Ticket>> {
    let sql = format!(
        "SELECT id FROM chunks WHERE state = {QUEUED} AND message = ?1 AND id > ?2 ORDER BY id LIMIT ?3"
    );
    let mut tickets = Vec::new();
    // Those that cannot be read are made up for, because a short page means the end.
    while tickets.len() < count {
        let page = [int(campaign.raw()), int(after.raw()), limit(count - tickets.len())];
        let ids = all(connection, &sql, page, id)?;
        let Some(last) = ids.last() else { break };
        after = *last;
        for id in ids {
            match find(connection, id) {
                Err(fault) if !fault.is_damage() => return Err(fault),
                found => tickets.extend(found.ok().flatten().map(|chunk| chunk.ticket())),
            }
        }
    }
    Ok(tickets)
}

/// Lists queued chunks of running campaigns after an id, and those on the way that cannot be read.
pub(super) fn queued_after(
    connection: &Connection,
    mut after: ChunkId,
    count: usize,
) -> Done<(Vec<ChunkRow>, Vec<ChunkId>)> {
    let sql = format!("SELECT id FROM chunks WHERE state = {QUEUED} AND id > ?1 ORDER BY id LIMIT ?2");
    let (mut queued, mut broken, mut trouble) = (Vec::new(), Vec::new(), None);
    while queued.len() < count {
        let page = all(connection, &sql, [int(after.raw()), limit(count - queued.len())], id)?;
        let Some(last) = page.last() else { break };
        after = *last;
        for id in page {
            match find(connection, id) {
                Ok(chunk) => queued.extend(chunk.filter(|chunk| chunk.is_running())),
                Err(fault) if fault.is_unavailable() => trouble = Some(fault),
                Err(fault) => {
                    damage::note(connection, "chunks", int(id.raw()), &fault);
                    broken.push(id);
                }
            }
        }
    }
    // A page that cannot be read holds up its own chunks; a disk that cannot be read is told.
    match trouble.filter(|_| queued.is_empty()) {
        Some(fault) => Err(fault),
        None => Ok((queued, broken)),
    }
}

/// Returns the tickets of those of the chunks that are queued and whose campaign runs; one that cannot be read has none.
pub(super) fn waiting(connection: &Connection, ids: &[ChunkId]) -> Done<Vec<Ticket>> {
    let mut tickets = Vec::new();
    for id in ids {
        let found = match find(connection, *id) {
            Err(fault) if fault.is_damage() => None,
            other => other?,
        };
        let waits = found.filter(|chunk| chunk.state == ChunkState::Queued && chunk.is_running());
        tickets.extend(waits.map(|chunk| chunk.ticket()));
    }
    Ok(tickets)
}

/// Lists leased chunks.
pub(super) fn leased(connection: &Connection) -> Done<Vec<ChunkId>> {
    // The small index of leases is named: it is the only one that does not hold every chunk there is.
    let sql =
        format!("SELECT id FROM chunks INDEXED BY chunks_leased WHERE state = {LEASED} ORDER BY lease_until");
    all(connection, &sql, [], id)
}

/// Returns whether a chunk is leased by an instance.
pub(super) fn is_leased_by(connection: &Connection, id: ChunkId, instance: u64) -> Done<bool> {
    exists(connection, "SELECT 1 FROM chunks WHERE id = ?1 AND instance = ?2", [int(id.raw()), int(instance)])
}

/// Lists chunks whose lease has run out.
pub(super) fn leases_over(connection: &Connection, now: Timestamp, count: usize) -> Done<Vec<ChunkId>> {
    let sql = format!(
        "SELECT id FROM chunks WHERE state = {LEASED} AND lease_until <= ?1 ORDER BY lease_until LIMIT ?2"
    );
    all(connection, &sql, [now.as_millis(), limit(count)], id)
}

/// Reads who is in a chunk.
pub(super) fn devices(connection: &Connection, id: ChunkId, count: usize) -> Done<Vec<DeviceId>> {
    let sql = "SELECT devices FROM chunks WHERE id = ?1";
    let read = |row: &Row<'_>| decode(row, 0);
    let devices = one(connection, sql, [int(id.raw())], read)?.unwrap_or_default();
    // The count stands beside the list, so that a list that was cut off is noticed.
    if devices.len() == count { Ok(devices) } else { Err(damaged("a chunk that miscounts its devices")) }
}

/// Reads a list of devices.
pub(super) fn decode(row: &Row<'_>, at: usize) -> Done<Vec<DeviceId>> {
    let bytes = row.get_ref(at)?.as_blob().map_err(|_| damaged("a list of devices that is no bytes"))?;
    decode_devices(bytes).ok_or_else(|| damaged("a list of devices that cannot be read"))
}

/// Leases a chunk.
pub(super) fn write_lease(connection: &Connection, id: ChunkId, epoch: u32, terms: LeaseTerms) -> Done<()> {
    let sql = "UPDATE chunks SET state = ?6, epoch = ?2, instance = ?3, lease_until = ?4, changed_at = ?5 WHERE id = ?1";
    let (instance, until, now) = (int(terms.instance), terms.until.as_millis(), terms.now.as_millis());
    let values = params![int(id.raw()), epoch, instance, until, now, ChunkState::Leased.code()];
    run(connection, sql, values).map(drop)
}

/// Leases a new chunk as another is leased.
pub(super) fn copy_lease(connection: &Connection, id: ChunkId, epoch: u32, other: ChunkId) -> Done<()> {
    let sql = "UPDATE chunks SET state = ?4, epoch = ?3, (changed_at, instance, lease_until) =
        (SELECT changed_at, instance, lease_until FROM chunks WHERE id = ?2) WHERE id = ?1";
    let values = params![int(id.raw()), int(other.raw()), epoch, ChunkState::Leased.code()];
    run(connection, sql, values).map(drop)
}

/// Prolongs a lease that an instance has under an epoch.
pub(super) fn extend(connection: &Connection, lease: Lease, terms: LeaseTerms) -> Done<()> {
    // Instance and epoch are the fence: a lease that was released and taken again is not prolonged.
    let sql =
        "UPDATE chunks SET lease_until = ?4 WHERE id = ?1 AND epoch = ?2 AND instance = ?3 AND state = ?5";
    let (instance, until) = (int(terms.instance), terms.until.as_millis());
    let values = params![int(lease.chunk.raw()), lease.epoch, instance, until, ChunkState::Leased.code()];
    run(connection, sql, values).map(drop)
}

/// Settles a chunk.
pub(super) fn write_settled(
    connection: &Connection,
    id: ChunkId,
    records: &[Record],
    now: Timestamp,
) -> Done<()> {
    let sql = "UPDATE chunks SET state = ?4, records = ?2, changed_at = ?3, instance = NULL, lease_until = NULL WHERE id = ?1";
    let state = ChunkState::Settled.code();
    run(connection, sql, params![int(id.raw()), encode_records(records), now.as_millis(), state]).map(drop)
}

/// Takes a chunk out of the way for good, whatever its row says.
pub(super) fn write_quarantined(connection: &Connection, id: ChunkId, now: Timestamp) -> Done<()> {
    let sql =
        "UPDATE chunks SET state = ?3, changed_at = ?2, instance = NULL, lease_until = NULL WHERE id = ?1";
    let condition = format!("id = {}", int(id.raw()));
    let values = [int(id.raw()), now.as_millis(), i64::from(ChunkState::Quarantined.code())];
    damage::force(connection, ("chunks", &condition), sql, values).map(drop)
}

/// Queues a chunk again.
pub(super) fn write_queued(
    connection: &Connection,
    id: ChunkId,
    due_at: Timestamp,
    ambiguous: bool,
) -> Done<()> {
    let sql = "UPDATE chunks SET state = ?4, due_at = ?2, ambiguous = ?3, changed_at = NULL, instance = NULL,
        lease_until = NULL WHERE id = ?1";
    let state = ChunkState::Queued.code();
    run(connection, sql, params![int(id.raw()), due_at.as_millis(), ambiguous, state]).map(drop)
}

/// Returns whether a chunk is leased under an epoch, or queued where none is given, whatever else its row says.
pub(super) fn is_open(connection: &Connection, id: ChunkId, epoch: Option<u32>) -> Done<bool> {
    let state = if epoch.is_some() { ChunkState::Leased } else { ChunkState::Queued };
    let sql = "SELECT 1 FROM chunks WHERE id = ?1 AND state = ?2 AND (?3 IS NULL OR epoch = ?3)";
    exists(connection, sql, params![int(id.raw()), state.code(), epoch])
}

/// Counts those that were taken out of the way.
pub(super) fn count_quarantined(connection: &Connection) -> Done<u64> {
    let sql = format!("SELECT count(*) FROM chunks WHERE state = {QUARANTINED}");
    Ok(one(connection, &sql, [], |row| number(row, 0))?.unwrap_or_default())
}

/// Reads the id that is a row's own number, whatever the rest of the row is.
fn id(row: &Row<'_>) -> Done<ChunkId> {
    Ok(ChunkId::from_raw(row.get::<_, i64>(0)?.cast_unsigned()))
}

fn read(row: &Row<'_>) -> Done<ChunkRow> {
    let app = AppId::from_raw(number(row, 12)?);
    let provider = code(row, 17, ProviderKind::from_code)?;
    let campaign = CampaignId::from_raw(number(row, 1)?);
    let count: usize = usize::from(row.get::<_, u16>(8)?);
    if !(1..=CHUNK_MAX_DEVICES).contains(&count) {
        return Err(damaged("a chunk of so many devices as none has"));
    }
    let facts = Chunk {
        id: ChunkId::from_raw(number(row, 0)?),
        campaign,
        lane: Lane { provider, app, class: code(row, 14, TrafficClass::from_code)? },
        state: code(row, 3, ChunkState::from_code)?,
        attempt: row.get(4)?,
        ambiguous: row.get(5)?,
        epoch: row.get(6)?,
        due_at: time(row, 7)?,
        count,
        changed_at: maybe_time(row, 11)?,
        campaign_state: code(row, 13, CampaignState::from_code)?,
        campaign_started: row.get(15)?,
    };
    Ok(ChunkRow {
        facts,
        fleet: AppProvider { no: number(row, 2)?, app, provider },
        first: DeviceId::from_raw(number(row, 9)?),
        last: DeviceId::from_raw(number(row, 10)?),
        collapse_key: row.get(16)?,
        place: place(campaign.into(), time(row, 18)?, time(row, 19)?),
    })
}
