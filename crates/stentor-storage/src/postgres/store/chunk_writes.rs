//! Changes of many chunks at once.

use crate::postgres::engine::Connection;
use stentor_core::chunk::encode_devices;
use stentor_core::delivery::{Record, encode_records};
use stentor_core::id::{CampaignId, ChunkId, DeviceId};
use stentor_core::ledger::{FIRST_EPOCH, NewChunk};
use stentor_core::ports::store::{Lease, LeaseTerms};
use stentor_core::time::Timestamp;

use super::app_providers::AppProvider;
use super::chunks::level;
use super::codes::{LEASED, QUEUED, SETTLED};
use crate::sql::{Done, Value, damaged, int, limit, number, one, params, run};

/// The row of a new chunk.
pub(super) struct NewChunkRow {
    id: ChunkId,
    campaign: CampaignId,
    fleet: AppProvider,
    attempt: u16,
    ambiguous: bool,
    due_at: Timestamp,
    created_at: Timestamp,
    parent: Option<ChunkId>,
    count: usize,
    first: DeviceId,
    last: DeviceId,
    devices: Vec<u8>,
    lease: Option<LeaseTerms>,
}

impl NewChunkRow {
    /// Creates the row of a chunk with its number.
    pub(super) fn new(id: ChunkId, fleet: AppProvider, new: &NewChunk<'_>) -> Done<Self> {
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
            lease: new.lease,
        })
    }
}

/// Inserts new chunks.
pub(super) fn insert(connection: &Connection, rows: Vec<NewChunkRow>) -> Done<()> {
    let sql = format!(
        "INSERT INTO chunks (id, message, fleet, state, attempt, ambiguous, epoch, due_at, created_at, parent, count, first,
        last, level, devices, instance, lease_until, changed_at)
        SELECT id, message, fleet, CASE WHEN instance IS NULL THEN {QUEUED} ELSE {LEASED} END, attempt, ambiguous <> 0,
            CASE WHEN instance IS NULL THEN 0 ELSE {FIRST_EPOCH} END, due_at, created_at, parent, count, first, last, level,
            devices, instance, lease_until, leased_at
        FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::integer[], $5::smallint[], $6::bigint[], $7::bigint[],
            $8::bigint[], $9::integer[], $10::bigint[], $11::bigint[], $12::smallint[], $13::bytea[], $14::bigint[],
            $15::bigint[], $16::bigint[])
        given (id, message, fleet, attempt, ambiguous, due_at, created_at, parent, count, first, last, level, devices, instance,
            lease_until, leased_at)"
    );
    let of_lease = |read: fn(LeaseTerms) -> i64| Value::maybe_ints(&rows, |row| row.lease.map(read));
    let (instance, until) =
        (of_lease(|terms| int(terms.instance)), of_lease(|terms| terms.until.as_millis()));
    let leased_at = of_lease(|terms| terms.now.as_millis());
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
        instance,
        until,
        leased_at,
    ];
    run(connection, &sql, values).map(drop)
}

/// Marks all queued and leased chunks as possibly sent; returns the number of deliveries concerned.
pub(in crate::postgres) fn mark_waiting(connection: &Connection) -> Done<u64> {
    // In one statement, so that an interruption cannot cause a chunk to be counted twice.
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

/// The outcomes of a chunk's devices.
pub(super) struct ChunkSettlement {
    pub(super) id: ChunkId,
    records: Vec<u8>,
    at: Timestamp,
    /// True if devices may still confirm deliveries, as long as the campaign has not expired.
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
