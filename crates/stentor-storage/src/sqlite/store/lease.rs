//! Leases and settlements, many in one transaction.

use rusqlite::Connection;
use stentor_core::chunk::Ticket;
use stentor_core::id::ChunkId;
use stentor_core::ledger::{self, LedgerCache};
use stentor_core::ports::store::{Lease, LeaseReply, LeaseTerms, SettleReply};
use stentor_core::settlement::Settlement;
use stentor_core::time::Timestamp;

use super::chunk_writes;
use super::contents::LeaseCaches;
use super::rows::Rows;
use crate::sql::{Done, int};

/// Leases chunks.
pub(super) fn lease(
    connection: &Connection,
    known: &LeaseCaches,
    ids: &[ChunkId],
    terms: LeaseTerms,
) -> Done<Vec<LeaseReply>> {
    let mut rows = Rows::knowing(connection, known);
    let mut ledger = LedgerCache::new(&mut rows);
    let replies = ids.iter().map(|id| ledger::lease(&mut ledger, *id, terms)).collect();
    // Also after a failure, which takes all of it back with the job.
    ledger.close(terms.now)?;
    replies
}

/// Prolongs leases.
pub(super) fn extend(connection: &Connection, leases: &[Lease], terms: LeaseTerms) -> Done<()> {
    for lease in leases {
        match chunk_writes::extend(connection, *lease, terms) {
            // One damaged row lets no other lease run out.
            Err(fault) if fault.is_damage() => {
                crate::sql::note_damage(connection, "chunks", int(lease.chunk.raw()), &fault)
            }
            done => done?,
        }
    }
    Ok(())
}

/// Releases chunks of which nothing was sent.
pub(super) fn release(connection: &Connection, leases: &[Lease], due_at: Timestamp) -> Done<Vec<Ticket>> {
    let mut rows = Rows::new(connection);
    let mut ledger = LedgerCache::new(&mut rows);
    let mut tickets = Vec::new();
    for lease in leases {
        tickets.extend(ledger::release(&mut ledger, *lease, due_at)?);
    }
    ledger.close(due_at)?;
    Ok(tickets)
}

/// Writes all settlements.
pub(super) fn settle(connection: &Connection, settlements: Vec<Settlement>) -> Done<Vec<SettleReply>> {
    let mut rows = Rows::new(connection);
    let mut ledger = LedgerCache::new(&mut rows);
    let now = settlements.iter().map(|given| given.now).max().unwrap_or_default();
    let replies =
        settlements.into_iter().map(|given| ledger::settle(&mut ledger, given)).collect::<Done<_>>()?;
    ledger.close(now)?;
    Ok(replies)
}
