//! Receipts in the rows of chunks: rewritten records, and whether more receipts are awaited.

use rusqlite::Connection;
use stentor_core::delivery::{Record, decode_records, encode_records};
use stentor_core::id::ChunkId;
use stentor_core::time::Timestamp;

use crate::sql::{Done, Row, damaged, force, int, limit, one, params, run};

/// Reads the records of a settled chunk's devices.
pub(super) fn records(connection: &Connection, id: ChunkId, count: usize) -> Done<Vec<Record>> {
    let sql = "SELECT records FROM chunks WHERE id = ?1";
    let found = one(connection, sql, [int(id.raw())], |row| decode(row, 0, count))?;
    found.ok_or_else(|| damaged("a chunk is missing"))
}

pub(super) fn decode(row: &Row<'_>, at: usize, count: usize) -> Done<Vec<Record>> {
    let bytes = row.bytes(at)?;
    decode_records(bytes, count).ok_or_else(|| damaged("records that cannot be read"))
}

/// Rewrites the records of a settled chunk's devices.
pub(super) fn write_records(connection: &Connection, id: ChunkId, records: &[Record]) -> Done<()> {
    let sql = "UPDATE chunks SET records = ?2 WHERE id = ?1";
    run(connection, sql, params![int(id.raw()), encode_records(records)]).map(drop)
}

/// Stores whether a settled chunk awaits receipts, until its message expires.
pub(super) fn write_awaits(connection: &Connection, id: ChunkId, awaits: bool) -> Done<()> {
    let sql = "UPDATE chunks SET receipts_until =
        CASE WHEN ?2 THEN (SELECT expires_at FROM campaigns WHERE id = chunks.message) END WHERE id = ?1";
    let row = format!("id = {}", int(id.raw()));
    force(connection, "chunks", &row, sql, [int(id.raw()), awaits.into()]).map(drop)
}

/// Clears the awaited receipts of chunks with expired messages, of at most `count` chunks.
pub(super) fn forget_expired(connection: &Connection, now: Timestamp, count: usize) -> Done<()> {
    let sql = "UPDATE chunks SET receipts_until = NULL WHERE id IN
        (SELECT id FROM chunks WHERE receipts_until <= ?1 ORDER BY receipts_until LIMIT ?2)";
    run(connection, sql, [now.as_millis(), limit(count)]).map(drop)
}
