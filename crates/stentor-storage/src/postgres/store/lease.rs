//! Leases and settlements, many in one transaction.

use crate::postgres::engine::Connection;
use stentor_core::chunk::Ticket;
use stentor_core::id::ChunkId;
use stentor_core::ledger::{self, LedgerCache};
use stentor_core::ports::store::{Lease, LeaseReply, LeaseTerms, SettleReply};
use stentor_core::settlement::Settlement;
use stentor_core::time::Timestamp;

use super::message_rows::MessageCache;
use super::prefetched_rows::PrefetchedRows;
use super::rows::Rows;
use crate::sql::Done;

/// Leases chunks; refuses one of the nodes that is not among them any more.
pub(super) fn lease(
    connection: &Connection,
    known: &MessageCache,
    own: Option<u64>,
    ids: &[ChunkId],
    terms: LeaseTerms,
) -> Done<Vec<LeaseReply>> {
    let read = PrefetchedRows::to_lease(connection, ids, own)?.with_contents(connection, known)?;
    Rows::knowing(connection, known).having_read(read).batch(|rows| {
        let mut ledger = LedgerCache::new(rows);
        let replies = ids.iter().map(|id| ledger::lease(&mut ledger, *id, terms)).collect::<Done<_>>()?;
        ledger.close(terms.now)?;
        Ok(replies)
    })
}

/// Releases chunks of which nothing was sent.
pub(super) fn release(connection: &Connection, leases: &[Lease], due_at: Timestamp) -> Done<Vec<Ticket>> {
    let ids: Vec<ChunkId> = leases.iter().map(|lease| lease.chunk).collect();
    let read = PrefetchedRows::of_chunks(connection, &ids)?;
    Rows::new(connection).having_read(read).batch(|rows| {
        let mut ledger = LedgerCache::new(rows);
        let mut tickets = Vec::new();
        for lease in leases {
            tickets.extend(ledger::release(&mut ledger, *lease, due_at)?);
        }
        ledger.close(due_at)?;
        Ok(tickets)
    })
}

/// Writes all settlements.
pub(super) fn settle(
    connection: &Connection,
    settlements: &[Settlement],
    own: Option<u64>,
) -> Done<Vec<SettleReply>> {
    let ids: Vec<ChunkId> = settlements.iter().map(|given| given.chunk).collect();
    let read = PrefetchedRows::of_chunks(connection, &ids)?.with_standings(connection)?;
    let children =
        settlements.iter().map(|given| given.children.len() + usize::from(!given.awaited.is_empty()));
    let rows = Rows::of(connection, own).having_read(read).numbering(children.sum());
    rows.batch(|rows| {
        let mut ledger = LedgerCache::new(rows);
        let now = settlements.iter().map(|given| given.now).max().unwrap_or_default();
        let replies = settlements
            .iter()
            .map(|given| ledger::settle(&mut ledger, given.clone()))
            .collect::<Done<_>>()?;
        ledger.close(now)?;
        Ok(replies)
    })
}
