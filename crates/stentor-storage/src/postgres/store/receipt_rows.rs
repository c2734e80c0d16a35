//! Receipts in the rows of chunks: rewritten records, and whether more receipts are awaited.

use crate::postgres::engine::Connection;
use crate::sql::{Done, Row, Value, all, damaged, int, limit, number, one, params, run};
use stentor_core::chunk::decode_devices;
use stentor_core::delivery::{Record, decode_records, encode_records};
use stentor_core::id::{ChunkId, DeviceId};
use stentor_core::time::Timestamp;

/// Reads the records of a settled chunk's devices.
pub(super) fn records(connection: &Connection, id: ChunkId, count: usize) -> Done<Vec<Record>> {
    let sql = "SELECT records FROM chunks WHERE id = $1";
    let found = one(connection, sql, [int(id.raw())], |row| decode(row, 0, count))?;
    found.ok_or_else(|| damaged("a chunk is missing"))
}

pub(super) fn decode(row: &Row<'_>, at: usize, count: usize) -> Done<Vec<Record>> {
    decode_records(row.bytes(at)?, count).ok_or_else(|| damaged("records that cannot be read"))
}

/// A settled chunk: its id, its devices, and their records.
type SettledRow = (ChunkId, Vec<DeviceId>, Vec<Record>);

/// Reads some settled chunks, as far as they can be read.
pub(super) fn records_of_all(connection: &Connection, ids: &[ChunkId]) -> Done<Vec<SettledRow>> {
    let sql = "SELECT id, devices, records FROM chunks WHERE id = ANY($1) AND records IS NOT NULL";
    let ids: Vec<i64> = ids.iter().map(|id| int(id.raw())).collect();
    let found = all(connection, sql, params![ids], |row| Ok(settled(row).ok()))?;
    Ok(found.into_iter().flatten().collect())
}

fn settled(row: &Row<'_>) -> Done<SettledRow> {
    let devices = decode_devices(row.bytes(1)?).ok_or_else(|| damaged("devices that cannot be read"))?;
    let records = decode(row, 2, devices.len())?;
    Ok((ChunkId::from_raw(number(row, 0)?), devices, records))
}

/// The new records of a settled chunk's devices.
pub(super) struct RewrittenRecords {
    pub(super) id: ChunkId,
    records: Vec<u8>,
    /// True if a device may still confirm its delivery.
    pub(super) awaits_receipts: bool,
}

impl RewrittenRecords {
    /// Encodes the records.
    pub(super) fn new(id: ChunkId, records: &[Record]) -> Self {
        Self { id, records: encode_records(records), awaits_receipts: true }
    }
}

/// Rewrites the records of settled chunks.
pub(super) fn write_records(connection: &Connection, rewritten: Vec<RewrittenRecords>) -> Done<()> {
    let sql = "UPDATE chunks SET records = given.records,
            receipts_until = CASE WHEN given.awaits <> 0 THEN receipts_until END
        FROM unnest($1::bigint[], $2::smallint[], $3::bytea[]) given (id, awaits, records) WHERE chunks.id = given.id";
    let values = vec![
        Value::ints(&rewritten, |one| int(one.id.raw())),
        Value::ints(&rewritten, |one| one.awaits_receipts.into()),
        Value::Blobs(rewritten.into_iter().map(|one| one.records).collect()),
    ];
    run(connection, sql, values).map(drop)
}

/// Stores whether a settled chunk awaits receipts, until its message expires.
pub(super) fn write_awaits(connection: &Connection, id: ChunkId, awaits: bool) -> Done<()> {
    let sql = "UPDATE chunks SET receipts_until =
        CASE WHEN $2::boolean THEN (SELECT expires_at FROM campaigns WHERE id = chunks.message) END WHERE id = $1";
    run(connection, sql, params![int(id.raw()), awaits]).map(drop)
}

/// Clears the awaited receipts of chunks with expired messages, of at most `count` chunks.
pub(super) fn forget_expired(connection: &Connection, now: Timestamp, count: usize) -> Done<()> {
    let sql = "UPDATE chunks SET receipts_until = NULL WHERE id IN
        (SELECT id FROM chunks WHERE receipts_until <= $1 ORDER BY receipts_until LIMIT $2)";
    run(connection, sql, [now.as_millis(), limit(count)]).map(drop)
}
