//! Chunks that can be neither leased nor settled: set aside, with what can be said of their deliveries.

use rusqlite::{Connection, params};
use stentor_core::delivery::{DeliveryState, Record};
use stentor_core::id::ChunkId;
use stentor_core::outcome::Reason;
use stentor_core::ports::clock::Timestamp;

use super::books::Shelf;
use super::chunks::{self, ChunkState};
use crate::sqlite::fault::{Done, damaged};
use crate::sqlite::query::{exists, one, run};
use crate::sqlite::row::{int, number};

/// Sets an open chunk aside, with its deliveries if its row and books make sense; tells whether it was there.
pub(super) fn set_aside(
    connection: &Connection,
    id: ChunkId,
    epoch: Option<u32>,
    now: Timestamp,
) -> Done<bool> {
    let sql = "SELECT 1 FROM chunks WHERE id = ?1
        AND (?2 IS NULL AND state = 0 OR ?2 IS NOT NULL AND state = 1 AND epoch = ?2)";
    if !exists(connection, sql, params![int(id.raw()), epoch])? {
        return Ok(false);
    }
    run(connection, "SAVEPOINT aside", [])?;
    match fail_deliveries(connection, id, now) {
        Ok(()) => {}
        Err(fault) if fault.is_damage() => run(connection, "ROLLBACK TO aside", []).map(drop)?,
        Err(fault) => return Err(fault),
    }
    chunks::write_set_aside(connection, id, now)?;
    run(connection, "RELEASE aside", [])?;
    Ok(true)
}

/// Counts them.
pub(super) fn count(connection: &Connection) -> Done<u64> {
    let sql = "SELECT count(*) FROM chunks WHERE state = 3";
    Ok(one(connection, sql, [], |row| number(row, 0))?.unwrap_or_default())
}

fn fail_deliveries(connection: &Connection, id: ChunkId, now: Timestamp) -> Done<()> {
    let chunk = chunks::find(connection, id)?.ok_or_else(|| damaged("a chunk without its campaign"))?;
    let leased = chunk.state == ChunkState::Leased;
    let record = Record::new(DeliveryState::Failed, Reason::Damaged, chunk.ambiguous || leased);
    let records = vec![record; chunk.count];
    let mut shelf = Shelf::new(connection);
    let books = shelf.open(chunk.campaign, chunk.lane.provider)?;
    if leased {
        books.settle(&records, 0)?;
    } else {
        books.end(record, chunk.count as u64)?;
    }
    chunks::write_records(connection, id, &records, now)?;
    shelf.close(now)
}
