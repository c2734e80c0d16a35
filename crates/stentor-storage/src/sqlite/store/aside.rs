//! Chunks that can be neither leased nor settled: set aside, with what can be said of their deliveries.

use rusqlite::{Connection, Row, params};
use stentor_core::delivery::{DeliveryState, Record};
use stentor_core::id::ChunkId;
use stentor_core::outcome::Reason;
use stentor_core::time::Timestamp;

use super::books::{self, Shelf};
use super::chunks::{self, Chunk, ChunkState};
use super::lost::Lost;
use crate::sqlite::damage::{self, attempt};
use crate::sqlite::fault::{Done, damaged};
use crate::sqlite::query::{exists, one};
use crate::sqlite::row::{int, number};

/// Sets an open chunk aside, with its deliveries if its row and books make sense; returns whether it was there.
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
    take_away(connection, id, now)?;
    Ok(true)
}

/// Sets an open chunk aside, whatever else is known of it.
pub(super) fn take_away(connection: &Connection, id: ChunkId, now: Timestamp) -> Done<()> {
    let failed = attempt(connection, || fail_deliveries(connection, id, now))?;
    chunks::write_set_aside(connection, id, now)?;
    let Err(fault) = failed else { return Ok(()) };
    damage::note("chunks", int(id.raw()), &fault);
    let sql = "SELECT message, fleet FROM chunks WHERE id = ?1";
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let place = one(connection, sql, [int(id.raw())], read)?;
    place.map_or(Ok(()), |(campaign, fleet)| books::write_off(connection, campaign, Some(fleet), now))
}

/// Does something with chunks, together if that can be; otherwise one by one, and those of which it cannot be done are set
/// aside. Chunks that are no longer in `state` are passed over.
pub(super) fn with_each<T>(
    connection: &Connection,
    (ids, state): (&[ChunkId], ChunkState),
    (lost, now): (&Lost, Timestamp),
    work: impl Fn(&mut Shelf<'_>, Chunk) -> Done<T>,
) -> Done<Vec<T>> {
    let some = |ids: &[ChunkId]| {
        let mut shelf = Shelf::new(connection);
        let mut done = Vec::with_capacity(ids.len());
        for id in ids.iter().filter(|id| !lost.has(**id)) {
            lost.touch(Some(*id));
            let chunk =
                chunks::find(connection, *id)?.ok_or_else(|| damaged("a chunk without its campaign"))?;
            if chunk.state == state {
                done.push(work(&mut shelf, chunk)?);
            }
        }
        lost.touch(ids.first().copied().filter(|_| ids.len() == 1));
        shelf.close(now)?;
        lost.touch(None);
        Ok(done)
    };
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    if !lost.is_alone()
        && let Ok(done) = attempt(connection, || some(ids))?
    {
        return Ok(done);
    }
    let mut done = Vec::with_capacity(ids.len());
    for id in ids {
        match attempt(connection, || some(std::slice::from_ref(id)))? {
            Ok(one) => done.extend(one),
            Err(_) => {
                lost.touch(Some(*id));
                take_away(connection, *id, now)?;
                lost.touch(None);
            }
        }
    }
    Ok(done)
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
        books.settle(&records, 0, 0)?;
    } else {
        books.end(record, chunk.count as u64)?;
    }
    chunks::write_records(connection, id, &records, now)?;
    shelf.close(now)
}
