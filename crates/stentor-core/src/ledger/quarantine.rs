//! Quarantine: removes chunks that can be neither leased nor settled, and ends their deliveries as far as they are known.
//!
//! It handles damaged rows: an operation that fails for several chunks is repeated for each one, and the failing chunk is removed.

use std::collections::BTreeSet;

use super::LedgerCache;
use super::cache::finish_if_over;
use super::rows::{Damaged, LedgerRows, OrphanedBooks};
use crate::chunk::ChunkState;
use crate::delivery::{DeliveryState, Record};
use crate::id::ChunkId;
use crate::outcome::Reason;
use crate::ports::store::StoreError;
use crate::time::Timestamp;

/// Quarantines an open chunk, even if its row is damaged. If its row and books are consistent, its deliveries end with it; otherwise the
/// open deliveries in its books that no row accounts for are written off.
pub fn take_away<R: LedgerRows>(rows: &mut R, id: ChunkId, now: Timestamp) -> Result<(), R::Error> {
    let failed = rows.attempt(|rows| fail_deliveries(rows, id, now))?;
    // Also after a failure: the row must be removed from processing in any case.
    rows.write_quarantined(id, now)?;
    let Err(error) = failed else { return Ok(()) };
    rows.note_damage(Damaged::Chunk(id), &error);
    write_off(rows, OrphanedBooks::OfChunk(id), now)
}

/// Writes off the open deliveries of books for which no chunk or producer is left.
pub(super) fn write_off<R: LedgerRows>(
    rows: &mut R,
    of: OrphanedBooks,
    now: Timestamp,
) -> Result<(), R::Error> {
    let mut campaigns = BTreeSet::new();
    if let OrphanedBooks::OfCampaign(campaign, _) = of {
        campaigns.insert(campaign);
    }
    for (campaign, mut books) in rows.orphaned_books(of)? {
        books.write_off();
        rows.save_books(campaign, &books)?;
        campaigns.insert(campaign);
    }
    campaigns.into_iter().try_for_each(|campaign| finish_if_over(rows, campaign, now))
}

/// Applies an operation to chunks, together if possible, otherwise one by one; chunks for which it fails are quarantined. Chunks that are
/// no longer in `state` are skipped.
pub fn with_each<R: LedgerRows, T>(
    rows: &mut R,
    ids: &[ChunkId],
    state: ChunkState,
    now: Timestamp,
    work: impl Fn(&mut LedgerCache<'_, R>, &R::Chunk) -> Result<T, R::Error>,
) -> Result<Vec<T>, R::Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    if !rows.tries_each_alone()
        && let Ok(done) = rows.attempt(|rows| with_some(rows, ids, state, now, &work))?
    {
        return Ok(done);
    }
    let mut done = Vec::with_capacity(ids.len());
    for id in ids {
        match rows.attempt(|rows| with_some(rows, std::slice::from_ref(id), state, now, &work))? {
            Ok(one) => done.extend(one),
            Err(_) => {
                rows.touch(Some(*id));
                take_away(rows, *id, now)?;
                rows.touch(None);
            }
        }
    }
    Ok(done)
}

fn with_some<R: LedgerRows, T>(
    rows: &mut R,
    ids: &[ChunkId],
    state: ChunkState,
    now: Timestamp,
    work: impl Fn(&mut LedgerCache<'_, R>, &R::Chunk) -> Result<T, R::Error>,
) -> Result<Vec<T>, R::Error> {
    let mut ledger = LedgerCache::new(rows);
    let mut done = Vec::with_capacity(ids.len());
    for id in ids {
        if ledger.rows.skips(*id) {
            continue;
        }
        ledger.rows.touch(Some(*id));
        let chunk = ledger.rows.chunk(*id)?.ok_or_else(without_campaign)?;
        if chunk.state == state {
            done.push(work(&mut ledger, &chunk)?);
        }
    }
    // The close writes books: its failure can be attributed to a chunk only if there is just one.
    ledger.rows.touch(ids.first().copied().filter(|_| ids.len() == 1));
    ledger.close(now)?;
    rows.touch(None);
    Ok(done)
}

/// Ends the deliveries of an open chunk as failed; if the chunk is leased, as ambiguous.
fn fail_deliveries<R: LedgerRows>(rows: &mut R, id: ChunkId, now: Timestamp) -> Result<(), R::Error> {
    let chunk = rows.chunk(id)?.ok_or_else(without_campaign)?;
    let is_leased = chunk.state == ChunkState::Leased;
    let record = Record::new(DeliveryState::Failed, Reason::Damaged, chunk.ambiguous || is_leased);
    let records = vec![record; chunk.count];
    let mut ledger = LedgerCache::new(rows);
    let books = ledger.open(chunk.campaign, chunk.lane.provider)?;
    match is_leased {
        true => books.settle(&records, 0, 0)?,
        false => books.end(record, chunk.count as u64)?,
    }
    ledger.rows.write_settled(id, &records, now)?;
    ledger.close(now)
}

fn without_campaign() -> StoreError {
    StoreError::Damaged("a chunk without its campaign".to_owned())
}
