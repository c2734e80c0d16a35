//! Rows of chunks.

use std::collections::HashMap;
use std::ops::Deref;

use crate::postgres::engine::{Connection, Row, Value, params};
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

use super::app_providers::Fleet;
use super::codes::{LEASED, QUARANTINED, QUEUED, SETTLED};
use crate::postgres::damage;
use crate::postgres::fault::{Done, damaged};
use crate::postgres::query::{all, exists, limit, one, run};
use crate::postgres::row::{code, int, maybe_time, number, time};

/// Most levels a span can have: a device id has 40 bits.
pub(super) const LEVELS: u32 = 41;

const SELECT: &str =
    "SELECT c.id, c.message, c.fleet, c.state, c.attempt, c.ambiguous, c.epoch, c.due_at, c.count, c.first,
    c.last, c.changed_at, k.app, k.state, k.class, k.started_at IS NOT NULL, k.collapse_key, f.provider,
    k.created_at, k.due_at
    FROM chunks c JOIN campaigns k ON k.id = c.message JOIN fleets f ON f.no = c.fleet";

/// A chunk with what the engine alone knows of it.
#[derive(Debug)]
pub(super) struct KeptChunk {
    facts: Chunk,
    pub(super) fleet: Fleet,
    pub(super) first: DeviceId,
    pub(super) last: DeviceId,
    pub(super) collapse_key: Option<String>,
    /// The message's place among those with its collapse key.
    pub(super) place: u64,
}

impl Deref for KeptChunk {
    type Target = Chunk;

    fn deref(&self) -> &Chunk {
        &self.facts
    }
}

impl KeptChunk {
    /// Returns what the queue carries.
    pub(super) fn ticket(&self) -> Ticket {
        Ticket { chunk: self.id, lane: self.lane, due_at: self.due_at }
    }
}

/// The row of a new, queued chunk.
pub(super) struct NewChunkRow {
    id: ChunkId,
    campaign: CampaignId,
    fleet: Fleet,
    attempt: u16,
    ambiguous: bool,
    due_at: Timestamp,
    created_at: Timestamp,
    parent: Option<ChunkId>,
    count: usize,
    first: DeviceId,
    last: DeviceId,
    devices: Vec<u8>,
}

impl NewChunkRow {
    /// Makes a chunk's row under its number.
    pub(super) fn new(id: ChunkId, fleet: Fleet, new: &NewChunk<'_>) -> Done<Self> {
        let (Some(first), Some(last)) = (new.devices.first(), new.devices.last()) else {
            return Err(damaged("a chunk without devices"));
        };
        Ok(Self {
            id,
            campaign: new.campaign,
            fleet,
            attempt: new.attempt,
            ambiguous: new.ambiguous,
            due_at: new.due_at,
            created_at: new.created_at,
            parent: new.parent,
            count: new.devices.len(),
            first: *first,
            last: *last,
            devices: encode_devices(new.devices),
        })
    }
}

/// Keeps new chunks.
pub(super) fn insert(connection: &Connection, rows: Vec<NewChunkRow>) -> Done<()> {
    let sql = format!(
        "INSERT INTO chunks (id, message, fleet, state, attempt, ambiguous, epoch, due_at, created_at, parent, count, first,
        last, level, devices)
        SELECT id, message, fleet, {QUEUED}, attempt, ambiguous <> 0, 0, due_at, created_at, parent, count, first, last, level, devices
        FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::integer[], $5::smallint[], $6::bigint[], $7::bigint[],
            $8::bigint[], $9::integer[], $10::bigint[], $11::bigint[], $12::smallint[], $13::bytea[])
        given (id, message, fleet, attempt, ambiguous, due_at, created_at, parent, count, first, last, level, devices)"
    );
    let values = vec![
        Value::ints(&rows, |row| int(row.id.raw())),
        Value::ints(&rows, |row| int(row.campaign.raw())),
        Value::ints(&rows, |row| int(row.fleet.no)),
        Value::ints(&rows, |row| row.attempt.into()),
        Value::ints(&rows, |row| row.ambiguous.into()),
        Value::ints(&rows, |row| row.due_at.as_millis()),
        Value::ints(&rows, |row| row.created_at.as_millis()),
        Value::maybe_ints(&rows, |row| row.parent.map(|parent| int(parent.raw()))),
        Value::ints(&rows, |row| limit(row.count)),
        Value::ints(&rows, |row| int(row.first.raw())),
        Value::ints(&rows, |row| int(row.last.raw())),
        Value::ints(&rows, |row| level(row.first, row.last).into()),
        Value::Blobs(rows.into_iter().map(|row| row.devices).collect()),
    ];
    run(connection, &sql, values).map(drop)
}

/// Marks all chunks that wait or are leased as ones that may have been sent; returns how many deliveries that concerns.
pub(in crate::postgres) fn mark_waiting(connection: &Connection) -> Done<u64> {
    // In one statement: whoever breaks off in between would count some twice.
    let sql = format!(
        "WITH marked AS (UPDATE chunks SET ambiguous = TRUE WHERE state IN ({QUEUED}, {LEASED}) AND NOT ambiguous
            RETURNING message, fleet, count),
        sums AS (SELECT m.message AS campaign, f.provider, sum(m.count)::bigint AS count
            FROM marked m JOIN fleets f ON f.no = m.fleet GROUP BY m.message, f.provider),
        noted AS (UPDATE ledgers l SET duplicate_bound = l.duplicate_bound + sums.count FROM sums
            WHERE l.campaign = sums.campaign AND l.provider = sums.provider)
        SELECT coalesce(sum(count), 0)::bigint FROM sums"
    );
    Ok(one(connection, &sql, (), |row| number(row, 0))?.unwrap_or_default())
}

/// Returns the number of bits of a span: two spans of one level differ in width by less than a factor of two.
pub(super) const fn level(first: DeviceId, last: DeviceId) -> u32 {
    u64::BITS - last.raw().saturating_sub(first.raw()).leading_zeros()
}

/// Finds a chunk.
pub(super) fn find(connection: &Connection, id: ChunkId) -> Done<Option<KeptChunk>> {
    one(connection, &format!("{SELECT} WHERE c.id = $1"), [int(id.raw())], read)
}

/// Finds those of some chunks that are there and can be read.
pub(super) fn find_all(connection: &Connection, ids: &[ChunkId]) -> Done<Vec<KeptChunk>> {
    let sql = format!("{SELECT} WHERE c.id = ANY($1)");
    let found = all(connection, &sql, params![raw(ids)], |row| Ok(read(row).ok()))?;
    Ok(found.into_iter().flatten().collect())
}

/// Finds those of some chunks that are there and can be read, for an instance; none when that is not among the nodes.
pub(super) fn find_all_for(connection: &Connection, ids: &[ChunkId], instance: u64) -> Done<Vec<KeptChunk>> {
    // Asked along with the chunks: a statement of its own would cost more than the answer.
    let sql =
        format!("{SELECT} WHERE c.id = ANY($1) AND EXISTS (SELECT 1 FROM nodes WHERE nodes.instance = $2)");
    let found = all(connection, &sql, params![raw(ids), int(instance)], |row| Ok(read(row).ok()))?;
    Ok(found.into_iter().flatten().collect())
}

/// Finds chunks, each with what is wrong with it where something is: those that cannot be read together are read alone.
fn find_each(connection: &Connection, ids: &[ChunkId]) -> Vec<(ChunkId, Done<Option<KeptChunk>>)> {
    let found = find_all(connection, ids).unwrap_or_default();
    let mut found: HashMap<_, _> = found.into_iter().map(|chunk| (chunk.id, chunk)).collect();
    let one = |id: &ChunkId| {
        let read = found.remove(id);
        (*id, read.map_or_else(|| find(connection, *id), |chunk| Ok(Some(chunk))))
    };
    ids.iter().map(one).collect()
}

/// Reads who is in some chunks, as far as it can be read.
pub(super) fn devices_of_all(
    connection: &Connection,
    ids: &[ChunkId],
) -> Done<Vec<(ChunkId, Vec<DeviceId>)>> {
    let sql = "SELECT id, devices FROM chunks WHERE id = ANY($1)";
    let read = |row: &Row<'_>| Ok(id(row).and_then(|id| Ok((id, decode(row, 1)?))).ok());
    Ok(all(connection, sql, params![raw(ids)], read)?.into_iter().flatten().collect())
}

fn raw(ids: &[ChunkId]) -> Vec<i64> {
    ids.iter().map(|id| int(id.raw())).collect()
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
            format!("SELECT id FROM chunks WHERE state = {QUEUED} AND message = $1 ORDER BY id LIMIT $2");
        return all(connection, &sql, [int(campaign.raw()), limit(count)], id);
    };
    let sql = format!(
        "SELECT id FROM chunks WHERE state = {QUEUED} AND message = $1 AND fleet = (SELECT no FROM fleets
        WHERE app = (SELECT app FROM campaigns WHERE id = $1) AND provider = $2) ORDER BY id LIMIT $3"
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
        "SELECT id FROM chunks WHERE state = {QUEUED} AND message = $1 AND id > $2 ORDER BY id LIMIT $3"
    );
    let mut tickets = Vec::new();
    // Those that cannot be read are made up for, because a short page means the end.
    while tickets.len() < count {
        let page = [int(campaign.raw()), int(after.raw()), limit(count - tickets.len())];
        let ids = all(connection, &sql, page, id)?;
        let Some(last) = ids.last() else { break };
        // Past those that cannot be read too: they would be met again for ever.
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
pub(super) fn queued_after(
    connection: &Connection,
    mut after: ChunkId,
    count: usize,
) -> Done<(Vec<KeptChunk>, Vec<ChunkId>)> {
    let sql = format!("SELECT id FROM chunks WHERE state = {QUEUED} AND id > $1 ORDER BY id LIMIT $2");
    let (mut queued, mut broken, mut trouble) = (Vec::new(), Vec::new(), None);
    while queued.len() < count {
        let page = all(connection, &sql, [int(after.raw()), limit(count - queued.len())], id)?;
        let Some(last) = page.last() else { break };
        // Past those that cannot be read too: they would be met again for ever.
        after = *last;
        for (id, found) in find_each(connection, &page) {
            match found {
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
pub(super) fn leased(connection: &Connection) -> Done<Vec<ChunkId>> {
    let sql = format!("SELECT id FROM chunks WHERE state = {LEASED} ORDER BY lease_until");
    all(connection, &sql, (), id)
}

/// Returns whether a chunk is leased by an instance.
pub(super) fn is_leased_by(connection: &Connection, id: ChunkId, instance: u64) -> Done<bool> {
    exists(connection, "SELECT 1 FROM chunks WHERE id = $1 AND instance = $2", [int(id.raw()), int(instance)])
}

/// Lists chunks whose lease has run out, of one instance or of all.
pub(super) fn leases_over(
    connection: &Connection,
    now: Timestamp,
    only: Option<u64>,
    count: usize,
) -> Done<Vec<ChunkId>> {
    let sql = format!(
        "SELECT id FROM chunks WHERE state = {LEASED} AND lease_until <= $1 AND ($3::bigint IS NULL OR instance = $3)
        ORDER BY lease_until LIMIT $2"
    );
    all(connection, &sql, params![now.as_millis(), limit(count), only.map(int)], id)
}

/// Reads who is in a chunk.
pub(super) fn devices(connection: &Connection, id: ChunkId, count: usize) -> Done<Vec<DeviceId>> {
    let sql = "SELECT devices FROM chunks WHERE id = $1";
    let read = |row: &Row<'_>| decode(row, 0);
    let devices = one(connection, sql, [int(id.raw())], read)?.unwrap_or_default();
    // The count stands beside the list, so that a list that was cut off is noticed.
    if devices.len() == count { Ok(devices) } else { Err(damaged("a chunk that miscounts its devices")) }
}

/// Reads a list of devices.
pub(super) fn decode(row: &Row<'_>, at: usize) -> Done<Vec<DeviceId>> {
    decode_devices(row.bytes(at)?).ok_or_else(|| damaged("a list of devices that cannot be read"))
}

/// Leases chunks, each under its epoch.
pub(super) fn write_leases(connection: &Connection, leases: &[(Lease, LeaseTerms)]) -> Done<()> {
    let sql = format!(
        "UPDATE chunks SET state = {LEASED}, epoch = given.epoch, instance = given.instance, lease_until = given.lease_until,
            changed_at = given.changed_at
        FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
            given (id, epoch, instance, lease_until, changed_at)
        WHERE chunks.id = given.id"
    );
    let values = vec![
        Value::ints(leases, |(lease, _)| int(lease.chunk.raw())),
        Value::ints(leases, |(lease, _)| lease.epoch.into()),
        Value::ints(leases, |(_, terms)| int(terms.instance)),
        Value::ints(leases, |(_, terms)| terms.until.as_millis()),
        Value::ints(leases, |(_, terms)| terms.now.as_millis()),
    ];
    run(connection, &sql, values).map(drop)
}

/// Leases a new chunk as another is leased.
pub(super) fn copy_lease(connection: &Connection, id: ChunkId, epoch: u32, other: ChunkId) -> Done<()> {
    let sql = "UPDATE chunks SET state = $4, epoch = $3, (changed_at, instance, lease_until) =
        (SELECT changed_at, instance, lease_until FROM chunks WHERE id = $2) WHERE id = $1";
    let values = params![int(id.raw()), int(other.raw()), epoch, ChunkState::Leased.code()];
    run(connection, sql, values).map(drop)
}

/// Prolongs leases that an instance has, each under its epoch.
pub(super) fn extend(connection: &Connection, leases: &[Lease], terms: LeaseTerms) -> Done<()> {
    // Instance and epoch are the fence: a lease that was released and taken again is not prolonged.
    let sql = format!(
        "UPDATE chunks SET lease_until = $4 FROM unnest($1::bigint[], $2::bigint[]) given (id, epoch)
        WHERE chunks.id = given.id AND chunks.epoch = given.epoch AND instance = $3 AND state = {LEASED}"
    );
    let values = params![
        Value::ints(leases, |lease| int(lease.chunk.raw())),
        Value::ints(leases, |lease| lease.epoch.into()),
        int(terms.instance),
        terms.until.as_millis(),
    ];
    run(connection, &sql, values).map(drop)
}

/// What became of a chunk's devices.
pub(super) struct ChunkSettlement {
    pub(super) id: ChunkId,
    records: Vec<u8>,
    at: Timestamp,
    /// Whether devices may still confirm deliveries, as long as the campaign has not expired.
    pub(super) awaits_receipts: bool,
}

impl ChunkSettlement {
    /// Encodes the records.
    pub(super) fn new(id: ChunkId, records: &[Record], at: Timestamp) -> Self {
        Self { id, records: encode_records(records), at, awaits_receipts: false }
    }
}

/// Settles chunks.
pub(super) fn write_settled(connection: &Connection, settled: Vec<ChunkSettlement>) -> Done<()> {
    let sql = format!(
        "UPDATE chunks SET state = {SETTLED}, records = given.records, changed_at = given.at, instance = NULL, lease_until = NULL,
            receipts_until = CASE WHEN given.awaits <> 0
                THEN (SELECT k.expires_at FROM campaigns k WHERE k.id = chunks.message) ELSE receipts_until END
        FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bytea[]) given (id, at, awaits, records)
        WHERE chunks.id = given.id"
    );
    let values = vec![
        Value::ints(&settled, |one| int(one.id.raw())),
        Value::ints(&settled, |one| one.at.as_millis()),
        Value::ints(&settled, |one| one.awaits_receipts.into()),
        Value::Blobs(settled.into_iter().map(|one| one.records).collect()),
    ];
    run(connection, &sql, values).map(drop)
}

/// Takes a chunk out of the way for good, whatever its row says.
pub(super) fn write_quarantined(connection: &Connection, id: ChunkId, now: Timestamp) -> Done<()> {
    let sql =
        "UPDATE chunks SET state = $3, changed_at = $2, instance = NULL, lease_until = NULL WHERE id = $1";
    let values = [int(id.raw()), now.as_millis(), i64::from(ChunkState::Quarantined.code())];
    run(connection, sql, values).map(drop)
}

/// A chunk that is queued again: its id, when it is due, and whether it may have been sent.
pub(super) type QueuedAgain = (ChunkId, Timestamp, bool);

/// Queues chunks again.
pub(super) fn write_queued(connection: &Connection, queued: &[QueuedAgain]) -> Done<()> {
    let sql = format!(
        "UPDATE chunks SET state = {QUEUED}, due_at = given.due_at, ambiguous = given.ambiguous <> 0, changed_at = NULL,
            instance = NULL, lease_until = NULL
        FROM unnest($1::bigint[], $2::bigint[], $3::smallint[]) given (id, due_at, ambiguous) WHERE chunks.id = given.id"
    );
    let values = vec![
        Value::ints(queued, |(id, ..)| int(id.raw())),
        Value::ints(queued, |(_, due_at, _)| due_at.as_millis()),
        Value::ints(queued, |(.., ambiguous)| i64::from(*ambiguous)),
    ];
    run(connection, &sql, values).map(drop)
}

/// Returns whether a chunk is leased under an epoch, or queued where none is given, whatever else its row says.
pub(super) fn is_open(connection: &Connection, id: ChunkId, epoch: Option<u32>) -> Done<bool> {
    let state = if epoch.is_some() { ChunkState::Leased } else { ChunkState::Queued };
    let sql = "SELECT 1 FROM chunks WHERE id = $1 AND state = $2 AND ($3::bigint IS NULL OR epoch = $3)";
    exists(connection, sql, params![int(id.raw()), state.code(), epoch])
}

/// Counts those that were taken out of the way.
pub(super) fn count_quarantined(connection: &Connection) -> Done<u64> {
    let sql = format!("SELECT count(*) FROM chunks WHERE state = {QUARANTINED}");
    Ok(one(connection, &sql, (), |row| number(row, 0))?.unwrap_or_default())
}

/// Reads the id that is a row's own number, whatever the rest of the row is.
fn id(row: &Row<'_>) -> Done<ChunkId> {
    Ok(ChunkId::from_raw(row.get::<i64>(0)?.cast_unsigned()))
}

fn read(row: &Row<'_>) -> Done<KeptChunk> {
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
    Ok(KeptChunk {
        facts,
        fleet: Fleet { no: number(row, 2)?, app, provider },
        first: DeviceId::from_raw(number(row, 9)?),
        last: DeviceId::from_raw(number(row, 10)?),
        collapse_key: row.get(16)?,
        place: place(campaign.into(), time(row, 18)?, time(row, 19)?),
    })
}
