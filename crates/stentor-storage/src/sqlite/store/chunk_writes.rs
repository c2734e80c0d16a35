//! Changes of chunks.

use rusqlite::Connection;
use stentor_core::chunk::{ChunkState, encode_devices};
use stentor_core::delivery::{Record, encode_records};
use stentor_core::id::ChunkId;
use stentor_core::ledger::{FIRST_EPOCH, NewChunk};
use stentor_core::ports::store::{Lease, LeaseTerms};
use stentor_core::time::Timestamp;

use super::app_providers::AppProvider;
use super::chunks::level;
use crate::sql::{Done, damaged, int, limit, params, run};

/// Inserts a new chunk.
pub(super) fn insert(connection: &Connection, fleet: AppProvider, new: &NewChunk<'_>) -> Done<ChunkId> {
    let (Some(first), Some(last)) = (new.devices.first(), new.devices.last()) else {
        return Err(damaged("a chunk without devices"));
    };
    let sql = "INSERT INTO chunks (message, fleet, state, attempt, ambiguous, due_at, created_at, parent, count, first,
        last, level, devices, epoch, instance, lease_until, changed_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";
    let (state, epoch) = match new.lease {
        Some(_) => (ChunkState::Leased, FIRST_EPOCH),
        None => (ChunkState::Queued, 0),
    };
    let values = params![
        int(new.campaign.raw()),
        int(fleet.no),
        state.code(),
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
        epoch,
        new.lease.map(|terms| int(terms.instance)),
        new.lease.map(|terms| terms.until.as_millis()),
        new.lease.map(|terms| terms.now.as_millis()),
    ];
    run(connection, sql, values)?;
    Ok(ChunkId::from_raw(connection.last_insert_rowid().unsigned_abs()))
}

/// Leases a chunk.
pub(super) fn write_lease(connection: &Connection, id: ChunkId, epoch: u32, terms: LeaseTerms) -> Done<()> {
    let sql = "UPDATE chunks SET state = ?6, epoch = ?2, instance = ?3, lease_until = ?4, changed_at = ?5 WHERE id = ?1";
    let (instance, until, now) = (int(terms.instance), terms.until.as_millis(), terms.now.as_millis());
    let values = params![int(id.raw()), epoch, instance, until, now, ChunkState::Leased.code()];
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
