//! Rows of chunks.

use rusqlite::{Connection, Row, params};
use stentor_core::campaign::CampaignState;
use stentor_core::chunk::{Class, Lane, Ticket, decode_devices, encode_devices};
use stentor_core::delivery::{Record, encode_records};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, CampaignId, ChunkId, DeviceId};
use stentor_core::limits::CHUNK_MAX_DEVICES;
use stentor_core::message::place;
use stentor_core::time::Timestamp;

use super::fleets::Fleet;
use crate::sqlite::damage;
use crate::sqlite::fault::{Done, damaged};
use crate::sqlite::query::{all, exists, limit, one, run};
use crate::sqlite::row::{code, int, maybe_time, number, time};
use stentor_core::ledger::FIRST_EPOCH;

/// Most levels a span can have: a device id has 40 bits.
pub(super) const LEVELS: u32 = 41;

const FIND: &str =
    "SELECT c.id, c.message, c.fleet, c.state, c.attempt, c.ambiguous, c.epoch, c.due_at, c.count, c.first,
    c.last, c.changed_at, k.app, k.state, k.class, k.started_at IS NOT NULL, k.collapse_key, f.provider,
    k.created_at, k.due_at
    FROM chunks c JOIN campaigns k ON k.id = c.message JOIN fleets f ON f.no = c.fleet WHERE c.id = ?1";

/// Where a chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChunkState {
    Queued,
    Leased,
    Settled,
    SetAside,
}

impl ChunkState {
    pub(super) const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Queued),
            1 => Some(Self::Leased),
            2 => Some(Self::Settled),
            3 => Some(Self::SetAside),
            _ => None,
        }
    }
}

/// A chunk with what is asked of its campaign again and again.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) id: ChunkId,
    pub(super) campaign: CampaignId,
    pub(super) fleet: Fleet,
    pub(super) state: ChunkState,
    pub(super) attempt: u16,
    pub(super) ambiguous: bool,
    pub(super) epoch: u32,
    pub(super) due_at: Timestamp,
    pub(super) count: usize,
    pub(super) first: DeviceId,
    pub(super) last: DeviceId,
    /// When it was leased or settled.
    pub(super) changed_at: Option<Timestamp>,
    pub(super) lane: Lane,
    pub(super) campaign_state: CampaignState,
    pub(super) campaign_started: bool,
    pub(super) collapse_key: Option<String>,
    /// The message's place among those with its collapse key.
    pub(super) place: u64,
}

/// A chunk to be kept.
pub(super) struct NewChunk<'a> {
    pub(super) campaign: CampaignId,
    pub(super) fleet: Fleet,
    pub(super) class: Class,
    pub(super) devices: &'a [DeviceId],
    pub(super) attempt: u16,
    pub(super) ambiguous: bool,
    pub(super) due_at: Timestamp,
    pub(super) created_at: Timestamp,
    pub(super) parent: Option<ChunkId>,
}

impl Chunk {
    /// Returns what the queue carries.
    pub(super) const fn ticket(&self) -> Ticket {
        Ticket { chunk: self.id, lane: self.lane, due_at: self.due_at }
    }

    /// Returns whether its ticket may be published.
    pub(super) fn is_running(&self) -> bool {
        self.campaign_state == CampaignState::Running
    }
}

/// Keeps a new, queued chunk.
pub(super) fn insert(connection: &Connection, new: &NewChunk<'_>) -> Done<Ticket> {
    let (Some(first), Some(last)) = (new.devices.first(), new.devices.last()) else {
        return Err(damaged("a chunk without devices"));
    };
    let sql = "INSERT INTO chunks (message, fleet, state, attempt, ambiguous, epoch, due_at, created_at, parent, count, first,
        last, level, devices) VALUES (?1, ?2, 0, ?3, ?4, 0, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    let values = params![
        int(new.campaign.raw()),
        int(new.fleet.no),
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
    let chunk = ChunkId::from_raw(connection.last_insert_rowid().unsigned_abs());
    let lane = Lane { provider: new.fleet.provider, app: new.fleet.app, class: new.class };
    Ok(Ticket { chunk, lane, due_at: new.due_at })
}

/// Returns the number of bits of a span: two spans of one level differ in width by less than a factor of two.
pub(super) const fn level(first: DeviceId, last: DeviceId) -> u32 {
    u64::BITS - last.raw().saturating_sub(first.raw()).leading_zeros()
}

/// Finds a chunk.
pub(super) fn find(connection: &Connection, id: ChunkId) -> Done<Option<Chunk>> {
    one(connection, FIND, [int(id.raw())], read)
}

// The lists are of ids, which an index gives: a row that cannot be read is no reason not to find the others.

/// Lists queued chunks of a campaign.
pub(super) fn queued_of(connection: &Connection, campaign: CampaignId, count: usize) -> Done<Vec<ChunkId>> {
    let sql = "SELECT id FROM chunks WHERE state = 0 AND message = ?1 ORDER BY id LIMIT ?2";
    all(connection, sql, [int(campaign.raw()), limit(count)], id)
}

/// Lists queued chunks of a campaign in a fleet.
pub(super) fn queued_at(
    connection: &Connection,
    campaign: CampaignId,
    fleet: u64,
    count: usize,
) -> Done<Vec<ChunkId>> {
    let sql = "SELECT id FROM chunks WHERE state = 0 AND message = ?1 AND fleet = ?2 ORDER BY id LIMIT ?3";
    all(connection, sql, [int(campaign.raw()), int(fleet), limit(count)], id)
}

/// Lists tickets of a campaign's queued chunks after a chunk, those that can be read; fewer than `count` only at the end.
pub(super) fn tickets(
    connection: &Connection,
    campaign: CampaignId,
    mut after: ChunkId,
    count: usize,
) -> Done<Vec<Ticket>> {
    let sql = "SELECT id FROM chunks WHERE state = 0 AND message = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
    let mut tickets = Vec::new();
    while tickets.len() < count {
        let page = [int(campaign.raw()), int(after.raw()), limit(count - tickets.len())];
        let ids = all(connection, sql, page, id)?;
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
) -> Done<(Vec<Chunk>, Vec<ChunkId>)> {
    let sql = "SELECT id FROM chunks WHERE state = 0 AND id > ?1 ORDER BY id LIMIT ?2";
    let (mut queued, mut broken, mut trouble) = (Vec::new(), Vec::new(), None);
    while queued.len() < count {
        let page = all(connection, sql, [int(after.raw()), limit(count - queued.len())], id)?;
        let Some(last) = page.last() else { break };
        after = *last;
        for id in page {
            match find(connection, id) {
                Ok(chunk) => queued.extend(chunk.filter(Chunk::is_running)),
                Err(fault) if fault.is_unavailable() => trouble = Some(fault),
                Err(fault) => {
                    damage::note("chunks", int(id.raw()), &fault);
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
    let sql = "SELECT id FROM chunks INDEXED BY chunks_leased WHERE state = 1 ORDER BY lease_until";
    all(connection, sql, [], id)
}

/// Returns whether a chunk is leased by an instance.
pub(super) fn is_leased_by(connection: &Connection, id: ChunkId, instance: u64) -> Done<bool> {
    exists(connection, "SELECT 1 FROM chunks WHERE id = ?1 AND instance = ?2", [int(id.raw()), int(instance)])
}

/// Lists chunks whose lease has run out.
pub(super) fn leases_over(connection: &Connection, now: Timestamp, count: usize) -> Done<Vec<ChunkId>> {
    let sql = "SELECT id FROM chunks WHERE state = 1 AND lease_until <= ?1 ORDER BY lease_until LIMIT ?2";
    all(connection, sql, [now.as_millis(), limit(count)], id)
}

/// Reads who is in a chunk.
pub(super) fn devices(connection: &Connection, id: ChunkId, count: usize) -> Done<Vec<DeviceId>> {
    let sql = "SELECT devices FROM chunks WHERE id = ?1";
    let read = |row: &Row<'_>| decode(row, 0);
    let devices = one(connection, sql, [int(id.raw())], read)?.unwrap_or_default();
    if devices.len() == count { Ok(devices) } else { Err(damaged("a chunk that miscounts its devices")) }
}

/// Reads a list of devices.
pub(super) fn decode(row: &Row<'_>, at: usize) -> Done<Vec<DeviceId>> {
    let bytes = row.get_ref(at)?.as_blob().map_err(|_| damaged("a list of devices that is no bytes"))?;
    decode_devices(bytes).ok_or_else(|| damaged("a list of devices that cannot be read"))
}

/// Settles a chunk.
pub(super) fn write_records(
    connection: &Connection,
    id: ChunkId,
    records: &[Record],
    now: Timestamp,
) -> Done<()> {
    let sql = "UPDATE chunks SET state = 2, records = ?2, changed_at = ?3, instance = NULL, lease_until = NULL WHERE id = ?1";
    run(connection, sql, params![int(id.raw()), encode_records(records), now.as_millis()]).map(drop)
}

/// Leases a new chunk as another is leased.
pub(super) fn write_leased_like(connection: &Connection, id: ChunkId, other: ChunkId) -> Done<()> {
    let sql = "UPDATE chunks SET state = 1, epoch = ?3, (changed_at, instance, lease_until) =
        (SELECT changed_at, instance, lease_until FROM chunks WHERE id = ?2) WHERE id = ?1";
    run(connection, sql, params![int(id.raw()), int(other.raw()), FIRST_EPOCH]).map(drop)
}

/// Takes a chunk out of the way for good, whatever its row says.
pub(super) fn write_set_aside(connection: &Connection, id: ChunkId, now: Timestamp) -> Done<()> {
    let sql =
        "UPDATE chunks SET state = 3, changed_at = ?2, instance = NULL, lease_until = NULL WHERE id = ?1";
    let condition = format!("id = {}", int(id.raw()));
    let values = [int(id.raw()), now.as_millis()];
    damage::force(connection, ("chunks", &condition), sql, values).map(drop)
}

/// Queues a chunk again.
pub(super) fn write_queued(
    connection: &Connection,
    id: ChunkId,
    due_at: Timestamp,
    ambiguous: bool,
) -> Done<()> {
    let sql = "UPDATE chunks SET state = 0, due_at = ?2, ambiguous = ?3, changed_at = NULL, instance = NULL,
        lease_until = NULL WHERE id = ?1";
    run(connection, sql, params![int(id.raw()), due_at.as_millis(), ambiguous]).map(drop)
}

/// Reads the id that is a row's own number, whatever the rest of the row is.
fn id(row: &Row<'_>) -> Done<ChunkId> {
    Ok(ChunkId::from_raw(row.get::<_, i64>(0)?.cast_unsigned()))
}

fn read(row: &Row<'_>) -> Done<Chunk> {
    let app = AppId::from_raw(number(row, 12)?);
    let provider = code(row, 17, ProviderKind::from_code)?;
    let campaign = CampaignId::from_raw(number(row, 1)?);
    let count: usize = usize::from(row.get::<_, u16>(8)?);
    if !(1..=CHUNK_MAX_DEVICES).contains(&count) {
        return Err(damaged("a chunk of so many devices as none has"));
    }
    Ok(Chunk {
        id: ChunkId::from_raw(number(row, 0)?),
        campaign,
        fleet: Fleet { no: number(row, 2)?, app, provider },
        state: code(row, 3, ChunkState::from_code)?,
        attempt: row.get(4)?,
        ambiguous: row.get(5)?,
        epoch: row.get(6)?,
        due_at: time(row, 7)?,
        count,
        first: DeviceId::from_raw(number(row, 9)?),
        last: DeviceId::from_raw(number(row, 10)?),
        changed_at: maybe_time(row, 11)?,
        lane: Lane { provider, app, class: code(row, 14, Class::from_code)? },
        campaign_state: code(row, 13, CampaignState::from_code)?,
        campaign_started: row.get(15)?,
        collapse_key: row.get(16)?,
        place: place(campaign.into(), time(row, 18)?, time(row, 19)?),
    })
}
