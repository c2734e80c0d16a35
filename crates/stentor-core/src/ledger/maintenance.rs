//! Maintenance of chunks: periodic sweeps, and recovery at start.

use std::time::Duration;

use super::control::end_queued;
use super::lease::queue_again;
use super::life::Ending;
use super::quarantine::{with_each, write_off};
use super::rows::{LedgerRows, OrphanedBooks};
use crate::chunk::{ChunkState, Ticket};
use crate::delivery::DeliveryState;
use crate::id::ChunkId;
use crate::outcome::Reason;
use crate::ports::store::{Recovery, Swept};
use crate::time::Timestamp;

/// Time after its due time for which a message with ttl 0 may wait for its one attempt before a sweep ends it.
pub const ZERO_TTL_GRACE: Duration = Duration::from_secs(60);

/// The end of deliveries that are too late.
const TOO_LATE: Ending = (DeliveryState::Expired, Reason::TtlPassed);

/// Returns true if a waiting delivery of a message with these due and expiry times can no longer be sent at `now`. With ttl 0 it has a
/// grace period for its one attempt.
#[must_use]
pub fn is_too_late(due_at: Timestamp, expires_at: Timestamp, now: Timestamp) -> bool {
    let has_ttl = expires_at > due_at;
    if has_ttl { expires_at <= now } else { expires_at.plus(ZERO_TTL_GRACE) <= now }
}

/// Releases the leases of all instances except this one; their chunks may have been sent. Returns their number, and the tickets that may be
/// published.
pub fn recover<R: LedgerRows>(
    rows: &mut R,
    instance: u64,
    now: Timestamp,
) -> Result<(Recovery, Vec<Ticket>), R::Error> {
    let ids = rows.leased()?;
    release(rows, &ids, now, |rows, id| rows.is_leased_by(id, instance))
}

/// Releases chunks that dead nodes had leased; returns their number, and the tickets that may be published.
pub fn release_dead<R: LedgerRows>(
    rows: &mut R,
    ids: &[ChunkId],
    now: Timestamp,
) -> Result<(Recovery, Vec<Ticket>), R::Error> {
    release(rows, ids, now, |_, _| Ok(false))
}

fn release<R: LedgerRows>(
    rows: &mut R,
    ids: &[ChunkId],
    now: Timestamp,
    is_held: impl Fn(&R, ChunkId) -> Result<bool, R::Error>,
) -> Result<(Recovery, Vec<Ticket>), R::Error> {
    let released = with_each(rows, ids, ChunkState::Leased, now, |ledger, chunk| {
        if is_held(&*ledger.rows, chunk.id)? {
            return Ok(None);
        }
        Ok(Some((queue_again(ledger, chunk, now, true)?, chunk.count as u64)))
    })?;
    let released: Vec<_> = released.into_iter().flatten().collect();
    let deliveries = released.iter().map(|(_, count)| count).sum();
    let recovery = Recovery { chunks: released.len() as u64, deliveries };
    Ok((recovery, released.into_iter().filter_map(|(ticket, _)| ticket).collect()))
}

/// Releases expired leases, and ends chunks that are too late, including the released ones. Also ends campaigns past their ttl, or
/// canceled, that have no open chunk although their books or producers indicate otherwise: their chunks were unreadable and were removed.
pub fn sweep<R: LedgerRows>(rows: &mut R, max: usize, now: Timestamp) -> Result<Swept, R::Error> {
    let ids = rows.leases_over(now, max)?;
    let released = with_each(rows, &ids, ChunkState::Leased, now, |ledger, chunk| {
        queue_again(ledger, chunk, now, true)
    })?;
    // After the leases: a released chunk may itself be too late.
    let expired = expire(rows, max, now)?;
    for campaign in rows.orphaned_campaigns(now.minus(ZERO_TTL_GRACE), max)? {
        rows.end_producers(campaign, None)?;
        write_off(rows, OrphanedBooks::OfCampaign(campaign, None), now)?;
    }
    let released = released.into_iter().flatten();
    let released = released.filter(|ticket| !expired.contains(&ticket.chunk)).collect();
    Ok(Swept { expired, released })
}

fn expire<R: LedgerRows>(rows: &mut R, max: usize, now: Timestamp) -> Result<Vec<ChunkId>, R::Error> {
    let is_late = |due_at, expires_at| is_too_late(due_at, expires_at, now);
    let mut queued: Vec<ChunkId> = Vec::new();
    for campaign in rows.expired_campaigns(now, is_late, max)? {
        queued.extend(rows.queued(campaign, None, max - queued.len())?);
    }
    end_queued(rows, &queued, TOO_LATE, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_ttl_has_a_grace_and_what_has_one_has_none() {
        let at = Timestamp::from_millis;
        assert!(!is_too_late(at(1_000), at(2_000), at(1_999)));
        assert!(is_too_late(at(1_000), at(2_000), at(2_000)));
        assert!(!is_too_late(at(1_000), at(1_000), at(60_999)));
        assert!(is_too_late(at(1_000), at(1_000), at(61_000)));
    }
}
