//! Leasing and requeueing of chunks.

use super::LedgerCache;
use super::control::end_chunk;
use super::life::{Ending, ending};
use super::rows::{Chunk, Contents, LedgerRows};
use crate::campaign::CampaignState;
use crate::chunk::{ChunkState, Ticket};
use crate::id::ChunkId;
use crate::outcome::Reason;
use crate::ports::store::{Lease, LeaseReply, LeaseTerms, LeasedChunk, StoreError};
use crate::time::Timestamp;

/// The result of a request to lease a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseDecision {
    /// It is leased.
    Lease,
    /// It stays queued: its campaign is paused.
    Wait,
    /// It ends with its campaign.
    End(Ending),
    /// It cannot be leased.
    Void,
}

/// Decides whether a chunk can be leased, from its state, the state of its campaign and the campaign's stop at the provider.
#[must_use]
pub fn decide_lease(chunk: ChunkState, campaign: CampaignState, stop: Option<Reason>) -> LeaseDecision {
    match (chunk, ending(campaign, stop)) {
        (ChunkState::Leased | ChunkState::Settled | ChunkState::Quarantined, _) => LeaseDecision::Void,
        (ChunkState::Queued, Some(ending)) => LeaseDecision::End(ending),
        (ChunkState::Queued, None) if campaign == CampaignState::Running => LeaseDecision::Lease,
        (ChunkState::Queued, None) => LeaseDecision::Wait,
    }
}

/// Leases a chunk and reads the data needed to send it.
pub fn lease<R: LedgerRows>(
    ledger: &mut LedgerCache<'_, R>,
    id: ChunkId,
    terms: LeaseTerms,
) -> Result<LeaseReply, R::Error> {
    let chunk = ledger.rows.chunk(id)?.filter(|chunk| chunk.state == ChunkState::Queued);
    let Some(chunk) = chunk else { return Ok(LeaseReply::Void) };
    let stop = ledger.open(chunk.campaign, chunk.lane.provider)?.ledger().stop.as_ref();
    match decide_lease(chunk.state, chunk.campaign_state, stop.map(|stop| stop.reason)) {
        LeaseDecision::Lease => take(ledger, &chunk, terms),
        LeaseDecision::Wait => Ok(LeaseReply::Paused),
        LeaseDecision::Void => Ok(LeaseReply::Void),
        LeaseDecision::End(ending) => {
            end_chunk(ledger, &chunk, chunk.ambiguous, ending, terms.now)?;
            Ok(LeaseReply::Void)
        }
    }
}

fn take<R: LedgerRows>(
    ledger: &mut LedgerCache<'_, R>,
    chunk: &R::Chunk,
    terms: LeaseTerms,
) -> Result<LeaseReply, R::Error> {
    let too_often = || StoreError::Damaged("a chunk leased too often".to_owned());
    let epoch = chunk.epoch.checked_add(1).ok_or_else(too_often)?;
    // Read before the lease is written: an unreadable chunk must stay queued.
    let Contents { message, devices, decisions, tokens } = ledger.rows.contents(chunk, terms.now)?;
    ledger.rows.write_lease(chunk, epoch, terms)?;
    let books = ledger.open(chunk.campaign, chunk.lane.provider)?;
    books.lease(chunk.count as u64)?;
    Ok(LeaseReply::Leased(Box::new(LeasedChunk {
        id: chunk.id,
        epoch,
        message,
        provider: chunk.lane.provider,
        attempt: chunk.attempt,
        ambiguous: chunk.ambiguous,
        devices,
        decisions,
        tokens,
        tally: books.ledger().tally,
    })))
}

/// Releases an unsent chunk if it is leased under this epoch; returns its ticket if it may be published.
pub fn release<R: LedgerRows>(
    ledger: &mut LedgerCache<'_, R>,
    lease: Lease,
    due_at: Timestamp,
) -> Result<Option<Ticket>, R::Error> {
    match ledger.rows.chunk(lease.chunk)?.filter(|chunk| chunk.is_leased_under(lease.epoch)) {
        Some(chunk) => queue_again(ledger, &chunk, due_at, false),
        None => Ok(None),
    }
}

/// Ends a lease without a settlement: the chunk is queued again, or ends with its campaign. Returns its ticket if it may be published.
///
/// If `unsettled`, the chunk may have been sent: it is ambiguous from then on and counted as a possible duplicate.
pub fn queue_again<R: LedgerRows>(
    ledger: &mut LedgerCache<'_, R>,
    chunk: &R::Chunk,
    due_at: Timestamp,
    unsettled: bool,
) -> Result<Option<Ticket>, R::Error> {
    let ambiguous = chunk.ambiguous || unsettled;
    ledger.open(chunk.campaign, chunk.lane.provider)?.release(chunk.count as u64, unsettled)?;
    // Queued first, in books and row: the end takes the deliveries from the queued ones.
    ledger.rows.write_queued(chunk.id, due_at, ambiguous)?;
    if let Some(ending) = ledger.ending(chunk)? {
        end_chunk(ledger, chunk, ambiguous, ending, due_at)?;
    }
    Ok(ticket(chunk, due_at))
}

fn ticket(chunk: &Chunk, due_at: Timestamp) -> Option<Ticket> {
    chunk.is_running().then_some(Ticket { chunk: chunk.id, lane: chunk.lane, due_at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::DeliveryState;

    #[test]
    fn only_a_queued_chunk_of_a_running_campaign_is_leased() {
        use CampaignState::{Canceled, Paused, Running, Scheduled};
        for state in ChunkState::ALL.iter().copied().filter(|state| *state != ChunkState::Queued) {
            assert_eq!(decide_lease(state, Running, None), LeaseDecision::Void, "{state}");
        }
        assert_eq!(decide_lease(ChunkState::Queued, Running, None), LeaseDecision::Lease);
        for waits in [Paused, Scheduled] {
            assert_eq!(decide_lease(ChunkState::Queued, waits, None), LeaseDecision::Wait);
        }
        let stopped = LeaseDecision::End((DeliveryState::Failed, Reason::PayloadRefused));
        assert_eq!(decide_lease(ChunkState::Queued, Paused, Some(Reason::PayloadRefused)), stopped);
        let canceled = LeaseDecision::End((DeliveryState::Canceled, Reason::CampaignCanceled));
        assert_eq!(decide_lease(ChunkState::Queued, Canceled, None), canceled);
    }
}
