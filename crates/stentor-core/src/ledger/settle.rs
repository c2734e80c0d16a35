//! Writes a settlement, once, under its lease.

use super::LedgerCache;
use super::control::stop_at;
use super::life::decide;
use super::rows::{FIRST_EPOCH, LedgerRows, NewChunk};
use crate::chunk::Ticket;
use crate::id::{ChunkId, DeviceId};
use crate::outcome::Reason;
use crate::ports::store::{Awaited, Lease, SettleReply, StoreError};
use crate::settlement::{Child, Settlement, TokenChange};
use crate::time::Timestamp;

/// Writes a settlement; a settlement with a lost lease changes nothing.
pub fn settle<R: LedgerRows>(
    ledger: &mut LedgerCache<'_, R>,
    given: Settlement,
) -> Result<SettleReply, R::Error> {
    let Some(chunk) = ledger.rows.chunk(given.chunk)? else { return Ok(SettleReply::Stale) };
    if !given.is_coherent(chunk.count) {
        let problem = format!("the settlement of {} is incoherent", given.chunk);
        return Err(StoreError::Conflict(problem).into());
    }
    // Compared in the writing transaction: the lease may have expired since the chunk was sent.
    if !chunk.is_leased_under(given.epoch) {
        return Ok(SettleReply::Stale);
    }
    let ended = ledger.ending(&chunk)?;
    let (given, stop) = decide(given, ended);
    let books = ledger.open(chunk.campaign, chunk.lane.provider)?;
    books.settle(&given.records, given.awaited.len() as u64, given.attempts)?;
    // The awaited part takes over the lease: the parent's row must still hold it.
    let awaited = add_awaited(ledger.rows, &chunk, &given)?;
    ledger.rows.write_settled(chunk.id, &given.records, given.now)?;
    if chunk.lane.provider.has_receipts() && given.records.iter().any(|record| record.awaits_receipt()) {
        ledger.rows.write_awaits_receipts(chunk.id, true)?;
    }
    let tickets = add_children(ledger.rows, &chunk, &given)?;
    let leased_at = chunk.changed_at.unwrap_or(given.now);
    for change in &given.tokens {
        change_token(ledger.rows, &chunk, change, leased_at, given.now)?;
    }
    if let Some(stop) = stop {
        stop_at(ledger, chunk.campaign, chunk.lane.provider, stop, given.now)?;
    }
    // Tickets of a paused campaign are published when it is resumed.
    let tickets = if chunk.is_running() { tickets } else { Vec::new() };
    Ok(SettleReply::Settled { tickets, awaited })
}

/// Continues the awaited deliveries in a chunk under the lease of its parent.
fn add_awaited<R: LedgerRows>(
    rows: &mut R,
    parent: &R::Chunk,
    given: &Settlement,
) -> Result<Option<Awaited>, R::Error> {
    if given.awaited.is_empty() {
        return Ok(None);
    }
    let devices = rows.devices(parent)?;
    let (attempt, ambiguous, due_at) = (parent.attempt, parent.ambiguous, parent.due_at);
    let child = Child { positions: given.awaited.clone(), due_at, attempt, ambiguous };
    let chunk = add_child(rows, parent, &child, &devices, given.now)?;
    rows.copy_lease(chunk, FIRST_EPOCH, parent.id)?;
    Ok(Some(Awaited { parent: parent.id, lease: Lease { chunk, epoch: FIRST_EPOCH } }))
}

fn add_children<R: LedgerRows>(
    rows: &mut R,
    parent: &R::Chunk,
    given: &Settlement,
) -> Result<Vec<Ticket>, R::Error> {
    if given.children.is_empty() {
        return Ok(Vec::new());
    }
    let devices = rows.devices(parent)?;
    let mut tickets = Vec::with_capacity(given.children.len());
    for child in &given.children {
        let chunk = add_child(rows, parent, child, &devices, given.now)?;
        tickets.push(Ticket { chunk, lane: parent.lane, due_at: child.due_at });
    }
    Ok(tickets)
}

fn add_child<R: LedgerRows>(
    rows: &mut R,
    parent: &R::Chunk,
    child: &Child,
    devices: &[DeviceId],
    now: Timestamp,
) -> Result<ChunkId, R::Error> {
    let device = |at: &u32| devices.get(*at as usize).copied();
    let devices: Option<Vec<DeviceId>> = child.positions.iter().map(device).collect();
    let beyond = || StoreError::Damaged("a child beyond its parent".to_owned());
    rows.insert_chunk(&NewChunk {
        campaign: parent.campaign,
        lane: parent.lane,
        devices: &devices.ok_or_else(beyond)?,
        attempt: child.attempt,
        ambiguous: child.ambiguous,
        due_at: child.due_at,
        created_at: now,
        parent: Some(parent.id),
        lease: None,
    })
}

/// Retires or replaces a token, unless it was registered again after the attempt began.
fn change_token<R: LedgerRows>(
    rows: &mut R,
    chunk: &R::Chunk,
    change: &TokenChange,
    leased_at: Timestamp,
    now: Timestamp,
) -> Result<(), R::Error> {
    match change {
        TokenChange::Retire { device, reason, since } => {
            let since = since.map_or(leased_at, |since| since.min(leased_at));
            rows.retire(chunk, *device, *reason, since, now)
        }
        TokenChange::Replace { device, token } => {
            // A token registered since then is newer than the push service's response.
            let is_renewed = rows.token_since(chunk, *device)?.is_none_or(|since| since > leased_at);
            if is_renewed || rows.move_token(chunk, *device, token, now)? {
                return Ok(());
            }
            rows.retire(chunk, *device, Reason::Unregistered, leased_at, now)
        }
    }
}
