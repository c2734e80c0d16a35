//! Rows of chunks.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::LazyLock;

use stentor_core::campaign::CampaignState;
use stentor_core::chunk::{ChunkState, Lane, Ticket, TrafficClass, decode_devices};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, CampaignId, ChunkId, DeviceId};
use stentor_core::ledger::Chunk;
use stentor_core::limits::CHUNK_MAX_DEVICES;
use stentor_core::message::{Message, place};
use stentor_core::time::Timestamp;

use super::app_providers::AppProvider;
use super::codes::{LEASED, QUARANTINED, QUEUED};
use crate::sql::{
    Connection, Done, Row, all, code, damaged, exists, force, int, limit, maybe_time, note_damage, number,
    one, params, run, time,
};

/// Devices whose ids lie closer than this are read as one range, others one by one.
const SPREAD_MAX_RATIO: u64 = 8;
/// Most levels a span can have: a device id has 40 bits.
pub(crate) const LEVELS: u32 = 41;

const SELECT: &str =
    "SELECT c.id, c.message, c.fleet, c.state, c.attempt, c.ambiguous, c.epoch, c.due_at, c.count, c.first,
    c.last, c.changed_at, k.app, k.state, k.class, k.started_at IS NOT NULL, k.collapse_key, f.provider,
    k.created_at, k.due_at
    FROM chunks c JOIN campaigns k ON k.id = c.message JOIN fleets f ON f.no = c.fleet";

static FIND: LazyLock<String> = LazyLock::new(|| format!("{SELECT} WHERE c.id = ?1"));

/// A chunk with the columns that only the engine uses.
#[derive(Debug)]
pub(crate) struct ChunkRow {
    facts: Chunk,
    pub(crate) fleet: AppProvider,
    pub(crate) first: DeviceId,
    pub(crate) last: DeviceId,
    pub(crate) collapse_key: Option<String>,
    /// The message's place among those with its collapse key.
    pub(crate) place: u64,
}

impl Deref for ChunkRow {
    type Target = Chunk;

    fn deref(&self) -> &Chunk {
        &self.facts
    }
}

impl ChunkRow {
    /// Returns the row that a new message has for its devices in a fleet before it is stored.
    pub(crate) fn of_new(message: &Message, fleet: AppProvider, devices: &[DeviceId]) -> Self {
        let facts = Chunk {
            id: ChunkId::from_raw(0),
            campaign: message.id.into(),
            lane: Lane { provider: fleet.provider, app: message.app, class: message.spec.target.class() },
            state: ChunkState::Queued,
            attempt: 1,
            ambiguous: false,
            epoch: 0,
            due_at: message.due_at,
            count: devices.len(),
            changed_at: None,
            campaign_state: CampaignState::Running,
            campaign_started: true,
        };
        let none = DeviceId::from_raw(0);
        Self {
            facts,
            fleet,
            first: devices.first().copied().unwrap_or(none),
            last: devices.last().copied().unwrap_or(none),
            collapse_key: message.spec.collapse_key.as_ref().map(|key| key.as_str().to_owned()),
            place: message.place(),
        }
    }

    /// Returns the ticket for the queue.
    pub(crate) fn ticket(&self) -> Ticket {
        Ticket { chunk: self.id, lane: self.lane, due_at: self.due_at }
    }

    /// Returns true if its devices lie so close that they are read as one range. A range is one search, but its walk passes devices of
    /// others.
    pub(crate) const fn is_dense(&self, devices: usize) -> bool {
        self.last.raw().saturating_sub(self.first.raw()) / SPREAD_MAX_RATIO <= devices as u64
    }
}

/// Returns the number of bits of a span: two spans of one level differ in width by less than a factor of two.
pub(crate) const fn level(first: DeviceId, last: DeviceId) -> u32 {
    u64::BITS - last.raw().saturating_sub(first.raw()).leading_zeros()
}

/// Finds a chunk.
pub(crate) fn find(connection: &Connection, id: ChunkId) -> Done<Option<ChunkRow>> {
    one(connection, &FIND, [int(id.raw())], read)
}

/// Finds those of the given chunks that exist and can be read.
pub(crate) fn find_all(connection: &Connection, ids: &[ChunkId]) -> Done<Vec<ChunkRow>> {
    let sql = format!("{SELECT} WHERE {}", connection.dialect().is_in("c.id", 1));
    let found = all(connection, &sql, params![raw(ids)], |row| Ok(read(row).ok()))?;
    Ok(found.into_iter().flatten().collect())
}

/// Finds those of the given chunks that exist and can be read, for an instance; none if the instance is not among the nodes.
pub(crate) fn find_all_for(connection: &Connection, ids: &[ChunkId], instance: u64) -> Done<Vec<ChunkRow>> {
    // The same query checks the instance: a separate statement would cost more than the check itself.
    let is_asked = connection.dialect().is_in("c.id", 1);
    let sql = format!("{SELECT} WHERE {is_asked} AND EXISTS (SELECT 1 FROM nodes WHERE nodes.instance = ?2)");
    let found = all(connection, &sql, params![raw(ids), int(instance)], |row| Ok(read(row).ok()))?;
    Ok(found.into_iter().flatten().collect())
}

/// Finds chunks, each with its error if it has one. Chunks that cannot be read together are read one by one.
fn find_each(connection: &Connection, ids: &[ChunkId]) -> Vec<(ChunkId, Done<Option<ChunkRow>>)> {
    let found = match connection.dialect().reads_together {
        true => find_all(connection, ids).unwrap_or_default(),
        false => Vec::new(),
    };
    let mut found: HashMap<_, _> = found.into_iter().map(|chunk| (chunk.id, chunk)).collect();
    let one = |id: &ChunkId| {
        let read = found.remove(id);
        (*id, read.map_or_else(|| find(connection, *id), |chunk| Ok(Some(chunk))))
    };
    ids.iter().map(one).collect()
}

/// Reads the devices of some chunks, as far as they can be read.
pub(crate) fn devices_of_all(
    connection: &Connection,
    ids: &[ChunkId],
) -> Done<Vec<(ChunkId, Vec<DeviceId>)>> {
    let sql = format!("SELECT id, devices FROM chunks WHERE {}", connection.dialect().is_in("id", 1));
    let read = |row: &Row<'_>| Ok(id(row).and_then(|id| Ok((id, decode(row, 1)?))).ok());
    Ok(all(connection, &sql, params![raw(ids)], read)?.into_iter().flatten().collect())
}

fn raw(ids: &[ChunkId]) -> Vec<i64> {
    ids.iter().map(|id| int(id.raw())).collect()
}

// The lists are of ids, which an index gives: a row that cannot be read is no reason not to find the others.

/// Lists queued chunks of a campaign, at one provider or at all.
pub(crate) fn queued(
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

/// Lists the readable tickets of a campaign's queued chunks after a chunk; fewer than `count` only at the end.
pub(crate) fn tickets(
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
        // Past unreadable rows too: otherwise they would be read again for ever.
        after = *last;
        for (_, found) in find_each(connection, &ids) {
            match found {
                Err(fault) if !fault.is_damage() => return Err(fault),
                found => tickets.extend(found.ok().flatten().map(|chunk| chunk.ticket())),
            }
        }
    }
    Ok(tickets)
}

/// Lists queued chunks of running campaigns after an id, and those on the way that cannot be read.
pub(crate) fn queued_after(
    connection: &Connection,
    mut after: ChunkId,
    count: usize,
) -> Done<(Vec<ChunkRow>, Vec<ChunkId>)> {
    let sql = format!("SELECT id FROM chunks WHERE state = {QUEUED} AND id > ?1 ORDER BY id LIMIT ?2");
    let (mut queued, mut broken, mut trouble) = (Vec::new(), Vec::new(), None);
    while queued.len() < count {
        let page = all(connection, &sql, [int(after.raw()), limit(count - queued.len())], id)?;
        let Some(last) = page.last() else { break };
        // Past unreadable rows too: otherwise they would be read again for ever.
        after = *last;
        for (id, found) in find_each(connection, &page) {
            match found {
                Ok(chunk) => queued.extend(chunk.filter(|chunk| chunk.is_running())),
                Err(fault) if fault.is_unavailable() => trouble = Some(fault),
                Err(fault) => {
                    note_damage(connection, "chunks", int(id.raw()), &fault);
                    broken.push(id);
                }
            }
        }
    }
    // A damaged page holds up only its own chunks; a read error of the disk is reported.
    match trouble.filter(|_| queued.is_empty()) {
        Some(fault) => Err(fault),
        None => Ok((queued, broken)),
    }
}

/// Returns the tickets of the given chunks that are queued and whose campaign runs. A damaged chunk has none.
pub(crate) fn waiting(connection: &Connection, ids: &[ChunkId]) -> Done<Vec<Ticket>> {
    let mut tickets = Vec::new();
    for (_, found) in find_each(connection, ids) {
        let found = match found {
            Err(fault) if fault.is_damage() => None,
            other => other?,
        };
        let waits = found.filter(|chunk| chunk.state == ChunkState::Queued && chunk.is_running());
        tickets.extend(waits.map(|chunk| chunk.ticket()));
    }
    Ok(tickets)
}

/// Lists leased chunks.
pub(crate) fn leased(connection: &Connection) -> Done<Vec<ChunkId>> {
    // The small index of leases is named: it is the only one that does not contain every chunk.
    let index = connection.dialect().index("chunks_leased");
    let sql = format!("SELECT id FROM chunks {index} WHERE state = {LEASED} ORDER BY lease_until");
    all(connection, &sql, (), id)
}

/// Returns true if a chunk is leased by an instance.
pub(crate) fn is_leased_by(connection: &Connection, id: ChunkId, instance: u64) -> Done<bool> {
    exists(connection, "SELECT 1 FROM chunks WHERE id = ?1 AND instance = ?2", [int(id.raw()), int(instance)])
}

/// Lists chunks with an expired lease, of one instance or of all.
pub(crate) fn leases_over(
    connection: &Connection,
    now: Timestamp,
    only: Option<u64>,
    count: usize,
) -> Done<Vec<ChunkId>> {
    let sql = format!(
        "SELECT id FROM chunks WHERE state = {LEASED} AND lease_until <= ?1 AND (CAST(?3 AS BIGINT) IS NULL OR instance = ?3)
        ORDER BY lease_until LIMIT ?2"
    );
    all(connection, &sql, params![now.as_millis(), limit(count), only.map(int)], id)
}

/// Reads the devices of a chunk.
pub(crate) fn devices(connection: &Connection, id: ChunkId, count: usize) -> Done<Vec<DeviceId>> {
    let sql = "SELECT devices FROM chunks WHERE id = ?1";
    let read = |row: &Row<'_>| decode(row, 0);
    let devices = one(connection, sql, [int(id.raw())], read)?.unwrap_or_default();
    // The count stands beside the list, so that a list that was cut off is noticed.
    if devices.len() == count { Ok(devices) } else { Err(damaged("a chunk that miscounts its devices")) }
}

/// Reads a list of devices.
pub(crate) fn decode(row: &Row<'_>, at: usize) -> Done<Vec<DeviceId>> {
    decode_devices(row.bytes(at)?).ok_or_else(|| damaged("a list of devices that cannot be read"))
}

/// Leases a new chunk as another is leased.
pub(crate) fn copy_lease(connection: &Connection, id: ChunkId, epoch: u32, other: ChunkId) -> Done<()> {
    let sql = "UPDATE chunks SET state = ?4, epoch = ?3, (changed_at, instance, lease_until) =
        (SELECT changed_at, instance, lease_until FROM chunks WHERE id = ?2) WHERE id = ?1";
    let values = params![int(id.raw()), int(other.raw()), epoch, ChunkState::Leased.code()];
    run(connection, sql, values).map(drop)
}

/// Quarantines a chunk, even if its row is damaged.
pub(crate) fn write_quarantined(connection: &Connection, id: ChunkId, now: Timestamp) -> Done<()> {
    let sql =
        "UPDATE chunks SET state = ?3, changed_at = ?2, instance = NULL, lease_until = NULL WHERE id = ?1";
    let condition = format!("id = {}", int(id.raw()));
    let values = [int(id.raw()), now.as_millis(), i64::from(ChunkState::Quarantined.code())];
    force(connection, "chunks", &condition, sql, values).map(drop)
}

/// Returns true if a chunk is leased under the given epoch, or is queued if none is given, even if its row is damaged otherwise.
pub(crate) fn is_open(connection: &Connection, id: ChunkId, epoch: Option<u32>) -> Done<bool> {
    let state = if epoch.is_some() { ChunkState::Leased } else { ChunkState::Queued };
    let sql =
        "SELECT 1 FROM chunks WHERE id = ?1 AND state = ?2 AND (CAST(?3 AS BIGINT) IS NULL OR epoch = ?3)";
    exists(connection, sql, params![int(id.raw()), state.code(), epoch])
}

/// Counts quarantined chunks.
pub(crate) fn count_quarantined(connection: &Connection) -> Done<u64> {
    let sql = format!("SELECT count(*) FROM chunks WHERE state = {QUARANTINED}");
    Ok(one(connection, &sql, (), |row| number(row, 0))?.unwrap_or_default())
}

/// Reads the id, which is the number of the row, even if the row is damaged.
fn id(row: &Row<'_>) -> Done<ChunkId> {
    Ok(ChunkId::from_raw(row.get::<i64>(0)?.cast_unsigned()))
}

fn read(row: &Row<'_>) -> Done<ChunkRow> {
    let app = AppId::from_raw(number(row, 12)?);
    let provider = code(row, 17, ProviderKind::from_code)?;
    let campaign = CampaignId::from_raw(number(row, 1)?);
    let count: usize = usize::from(row.get::<u16>(8)?);
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
