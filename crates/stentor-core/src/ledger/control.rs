//! Cancels, pauses, resumes and stops campaigns, as a whole or at one provider.

use super::cache::finish_if_over;
use super::life::{Ending, ending};
use super::quarantine::{take_away, with_each, write_off};
use super::rows::{Chunk, Damaged, LedgerRows, OrphanedBooks};
use super::{Books, LedgerCache};
use crate::campaign::{Campaign, CampaignAction, CampaignState, ProviderLedger, Stop};
use crate::chunk::ChunkState;
use crate::delivery::{DeliveryState, Record};
use crate::device::ProviderKind;
use crate::id::{AppId, CampaignId, ChunkId};
use crate::outcome::Reason;
use crate::ports::store::StoreError;
use crate::time::Timestamp;

/// The end of waiting deliveries of a canceled campaign.
const CANCELED: Ending = (DeliveryState::Canceled, Reason::CampaignCanceled);
/// Most rounds of ending queued chunks in one transaction.
const ROUNDS_MAX_COUNT: usize = 4;

/// Performs an action of the owner; returns the campaign after it. Canceling ends as many queued chunks as one portion of work allows; the
/// rest follows later. An unreadable campaign can still be canceled.
pub fn act<R: LedgerRows>(
    rows: &mut R,
    (app, id): (AppId, CampaignId),
    action: CampaignAction,
    now: Timestamp,
) -> Result<Campaign, R::Error> {
    match rows.campaign(app, id) {
        Err(error) if R::is_unreadable(&error) && action == CampaignAction::Cancel => {
            rows.force_state(id, CampaignState::Canceled)?;
            cancel(rows, id, now)?;
        }
        found => {
            let (campaign, has_begun) = found?.ok_or(StoreError::NotFound("message"))?;
            let before = campaign.state;
            let refused = || StoreError::Conflict(format!("cannot {action} a campaign that is {before}"));
            let after = match (before, action) {
                // Deliveries that our own devices have not confirmed yet can still be held back and released again.
                (CampaignState::Finished, CampaignAction::Pause) if awaits_receipts(rows, id)? => {
                    Some(CampaignState::Paused)
                }
                (CampaignState::Paused, CampaignAction::Resume) if campaign.ended_at.is_some() => {
                    Some(CampaignState::Finished)
                }
                _ => before.after(action, has_begun),
            };
            let after = after.ok_or_else(refused)?;
            // Before `cancel`, which may end the campaign in the state that it finds.
            rows.write_state(id, after)?;
            if after == CampaignState::Canceled {
                cancel(rows, id, now)?;
            }
        }
    }
    Ok(rows.campaign(app, id)?.ok_or(StoreError::NotFound("message"))?.0)
}

/// Returns true if devices may still confirm deliveries of a campaign. Dropped deliveries count as unconfirmed.
fn awaits_receipts<R: LedgerRows>(rows: &R, id: CampaignId) -> Result<bool, R::Error> {
    let sums = rows.sums(id)?.unwrap_or_default();
    Ok(sums.iter().any(|books| books.provider.has_receipts() && books.tally.accepted > books.delivered))
}

fn cancel<R: LedgerRows>(rows: &mut R, id: CampaignId, now: Timestamp) -> Result<(), R::Error> {
    // Before the books are closed: afterwards the state of the expansion is lost.
    let sums = rows.sums(id)?.unwrap_or_default();
    // Before `wind_up`: a campaign that still expands does not end.
    rows.end_producers(id, None)?;
    rows.complete_books(id)?;
    note_unexpanded(rows, id, &sums, now)?;
    wind_up(rows, id, now).map(drop)
}

/// Records in the books of each provider with an incomplete audience that a cancel stopped the expansion.
fn note_unexpanded<R: LedgerRows>(
    rows: &mut R,
    id: CampaignId,
    sums: &[ProviderLedger],
    now: Timestamp,
) -> Result<(), R::Error> {
    let mut ledger = LedgerCache::new(rows);
    for books in sums.iter().filter(|books| !books.audience_complete) {
        let detail = format!("canceled while its audience was expanded, {} devices so far", books.audience);
        let stop = Stop { reason: Reason::CampaignCanceled, detail };
        ledger.open(id, books.provider)?.stop(stop);
    }
    ledger.close(now)
}

/// Ends queued chunks of a canceled campaign within one portion of work; returns true if more are left.
pub fn wind_up<R: LedgerRows>(rows: &mut R, id: CampaignId, now: Timestamp) -> Result<bool, R::Error> {
    let mut is_more = true;
    for round in 0..ROUNDS_MAX_COUNT {
        // After the first round, so that each portion makes progress however slow the store is.
        if !is_more || round > 0 && rows.is_portion_over() {
            break;
        }
        let queued = rows.queued(id, None, R::ENDED_AT_ONCE_MAX_COUNT)?;
        end_queued(rows, &queued, CANCELED, now)?;
        is_more = queued.len() == R::ENDED_AT_ONCE_MAX_COUNT;
    }
    if !is_more {
        finish_if_over(rows, id, now)?;
    }
    Ok(is_more)
}

/// Stops a campaign at a provider: nothing more is expanded there, and its queued chunks there end with it, some at once and the rest by
/// [`end_some_at`].
pub fn stop_at<R: LedgerRows>(
    ledger: &mut LedgerCache<'_, R>,
    id: CampaignId,
    provider: ProviderKind,
    stop: Stop,
    now: Timestamp,
) -> Result<(), R::Error> {
    ledger.rows.end_producers(id, Some(provider))?;
    let books = ledger.open(id, provider)?;
    books.stop(stop);
    // The reason of the first stop, which stays: all deliveries end for the same reason.
    let reason = books.ledger().stop.as_ref().map_or(Reason::None, |stop| stop.reason);
    end_some_at(ledger, id, provider, reason, now).map(drop)
}

/// Ends some queued chunks of a campaign at a provider at which it was stopped; returns their number.
pub fn end_some_at<R: LedgerRows>(
    ledger: &mut LedgerCache<'_, R>,
    id: CampaignId,
    provider: ProviderKind,
    reason: Reason,
    now: Timestamp,
) -> Result<usize, R::Error> {
    let queued = ledger.rows.queued(id, Some(provider), R::ENDED_AT_ONCE_MAX_COUNT)?;
    for chunk in &queued {
        match ledger.rows.chunk(*chunk) {
            Ok(Some(chunk)) => {
                let ending = ending(chunk.campaign_state, Some(reason)).unwrap_or(CANCELED);
                end_chunk(ledger, &chunk, chunk.ambiguous, ending, now)?;
            }
            Err(error) if !R::is_unreadable(&error) => return Err(error),
            // Removed from the list: otherwise every portion would begin with it, and never reach the rest.
            Ok(None) | Err(_) => ledger.rows.write_quarantined(*chunk, now)?,
        }
    }
    Ok(queued.len())
}

/// Stops a campaign at a provider because its audience cannot be determined. If the stop itself fails on damage, ends the producer there
/// and all chunks that can be ended.
pub fn give_up_producer<R: LedgerRows>(
    rows: &mut R,
    id: CampaignId,
    provider: ProviderKind,
    now: Timestamp,
) -> Result<(), R::Error> {
    let stop = Stop { reason: Reason::Damaged, detail: "its audience cannot be determined".to_owned() };
    let done = rows.attempt(|rows| {
        let mut ledger = LedgerCache::new(rows);
        stop_at(&mut ledger, id, provider, stop.clone(), now)?;
        ledger.close(now)
    })?;
    let error = match done {
        // Other errors than damage may be temporary; they must not end anything.
        Err(error) if !R::is_unreadable(&error) => return Err(error),
        Err(error) => error,
        Ok(()) => return Ok(()),
    };
    rows.note_damage(Damaged::Campaign(id), &error);
    rows.end_producers(id, Some(provider))?;
    stop_without_books(rows, id, provider, stop)?;
    write_off(rows, OrphanedBooks::OfCampaign(id, Some(provider)), now)
}

/// Records the stop at a provider in all orphaned books, or in new books if there are none: without it a campaign with an empty audience
/// would pass for a finished one.
fn stop_without_books<R: LedgerRows>(
    rows: &mut R,
    id: CampaignId,
    provider: ProviderKind,
    stop: Stop,
) -> Result<(), R::Error> {
    let mut orphaned = rows.orphaned_books(OrphanedBooks::OfCampaign(id, Some(provider)))?;
    if orphaned.is_empty()
        && rows.sums(id)?.is_some_and(|sums| sums.iter().all(|one| one.provider != provider))
    {
        orphaned.push((id, Books::new(provider)));
    }
    for (campaign, mut books) in orphaned {
        books.stop(stop.clone());
        rows.save_books(campaign, &books)?;
    }
    Ok(())
}

/// Ends queued chunks, each in the same way; returns their ids.
pub(super) fn end_queued<R: LedgerRows>(
    rows: &mut R,
    ids: &[ChunkId],
    ending: Ending,
    now: Timestamp,
) -> Result<Vec<ChunkId>, R::Error> {
    with_each(rows, ids, ChunkState::Queued, now, |ledger, chunk| {
        end_chunk(ledger, chunk, chunk.ambiguous, ending, now).map(|()| chunk.id)
    })
}

/// Ends all deliveries of a queued chunk in the same way.
pub(super) fn end_chunk<R: LedgerRows>(
    ledger: &mut LedgerCache<'_, R>,
    chunk: &Chunk,
    ambiguous: bool,
    (state, reason): Ending,
    now: Timestamp,
) -> Result<(), R::Error> {
    let record = Record::new(state, reason, ambiguous);
    ledger.open(chunk.campaign, chunk.lane.provider)?.end(record, chunk.count as u64)?;
    ledger.rows.write_settled(chunk.id, &vec![record; chunk.count], now)
}

/// Ends some queued chunks of a campaign that was canceled, or stopped at `only`. Chunks that cannot be ended are quarantined, so that they
/// are not retried forever. Returns true if anything was done.
pub fn end_or_quarantine<R: LedgerRows>(
    rows: &mut R,
    (id, only): (CampaignId, Option<(ProviderKind, Reason)>),
    now: Timestamp,
) -> Result<bool, R::Error> {
    let done = rows.attempt(|rows| {
        let Some((provider, reason)) = only else { return wind_up(rows, id, now).map(|_| true) };
        let mut ledger = LedgerCache::new(rows);
        let ended = end_some_at(&mut ledger, id, provider, reason, now)?;
        ledger.close(now)?;
        Ok(ended > 0)
    })?;
    let error = match done {
        Ok(is_done) => return Ok(is_done),
        Err(error) => error,
    };
    rows.note_damage(Damaged::Campaign(id), &error);
    let mut is_done = false;
    for chunk in rows.queued(id, only.map(|(provider, _)| provider), R::ENDED_AT_ONCE_MAX_COUNT)? {
        is_done |= rows.attempt(|rows| take_away(rows, chunk, now))?.is_ok();
    }
    Ok(is_done)
}
