//! Leases and settlements, many in one transaction.

use crate::postgres::engine::Connection;
use stentor_core::chunk::Ticket;
use stentor_core::id::ChunkId;
use stentor_core::ledger::{self, LedgerCache};
use stentor_core::ports::store::{Lease, LeaseReply, LeaseTerms, SettleReply};
use stentor_core::settlement::Settlement;
use stentor_core::time::Timestamp;

use super::chunks;
use super::message_rows::MessageMemory;
use super::rows::LedgerConnection;
use crate::postgres::fault::Done;

/// Leases chunks.
pub(super) fn lease(
    connection: &Connection,
    known: &MessageMemory,
    ids: &[ChunkId],
    terms: LeaseTerms,
) -> Done<Vec<LeaseReply>> {
    let mut rows = LedgerConnection::knowing(connection, known);
    let mut ledger = LedgerCache::new(&mut rows);
    let replies = ids.iter().map(|id| ledger::lease(&mut ledger, *id, terms)).collect();
    ledger.close(terms.now)?;
    replies
}

/// Prolongs leases.
pub(super) fn extend(connection: &Connection, leases: &[Lease], terms: LeaseTerms) -> Done<()> {
    leases.iter().try_for_each(|lease| chunks::extend(connection, *lease, terms))
}

/// Releases chunks of which nothing was sent.
pub(super) fn release(connection: &Connection, leases: &[Lease], due_at: Timestamp) -> Done<Vec<Ticket>> {
    let mut rows = LedgerConnection::new(connection);
    let mut ledger = LedgerCache::new(&mut rows);
    let mut tickets = Vec::new();
    for lease in leases {
        tickets.extend(ledger::release(&mut ledger, *lease, due_at)?);
    }
    ledger.close(due_at)?;
    Ok(tickets)
}

/// Writes all settlements.
pub(super) fn settle(
    connection: &Connection,
    settlements: &[Settlement],
    own: Option<u64>,
) -> Done<Vec<SettleReply>> {
    let mut rows = LedgerConnection::of(connection, own);
    let mut ledger = LedgerCache::new(&mut rows);
    let now = settlements.iter().map(|given| given.now).max().unwrap_or_default();
    let replies =
        settlements.iter().map(|given| ledger::settle(&mut ledger, given.clone())).collect::<Done<_>>()?;
    ledger.close(now)?;
    Ok(replies)
}
