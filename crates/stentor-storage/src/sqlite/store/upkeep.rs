//! What must be done from time to time, and at start.

use rusqlite::Connection;
use stentor_core::chunk::Ticket;
use stentor_core::delivery::DeliveryState;
use stentor_core::id::{CampaignId, ChunkId};
use stentor_core::outcome::Reason;
use stentor_core::ports::clock::Timestamp;
use stentor_core::ports::store::{Recovery, Swept};

use super::books::Shelf;
use super::{campaigns, chunks, lease, sequences};
use crate::ZERO_TTL_GRACE;
use crate::sqlite::fault::Done;
use crate::sqlite::query::{all, limit, run};
use crate::sqlite::row::{int, number};

/// Releases what dead processes had leased.
pub(super) fn recover(connection: &Connection, instance: u64, now: Timestamp) -> Done<Recovery> {
    let mut shelf = Shelf::new(connection);
    let mut found = Recovery::default();
    for chunk in chunks::leased_by_others(connection, instance)? {
        found.chunks += 1;
        found.deliveries += chunk.count as u64;
        lease::queue_again(connection, &mut shelf, chunk, now, true)?;
    }
    shelf.close(now)?;
    Ok(found)
}

/// Ends what is too late and releases leases that ran out.
pub(super) fn sweep(connection: &Connection, count: usize, now: Timestamp) -> Done<Swept> {
    let mut shelf = Shelf::new(connection);
    let released = release_all(connection, &mut shelf, count, now)?;
    let expired = expire(connection, &mut shelf, count, now)?;
    shelf.close(now)?;
    let released = released.into_iter().filter(|ticket| !expired.contains(&ticket.chunk)).collect();
    Ok(Swept { expired, released })
}

/// Forgets old campaigns and replies, at most so many rows.
pub(super) fn prune(
    connection: &Connection,
    ended_before: Timestamp,
    replies_before: Timestamp,
    count: usize,
) -> Done<u64> {
    let mut left = count;
    let sql = "SELECT id FROM campaigns WHERE ended_at < ?1 ORDER BY ended_at LIMIT ?2";
    let old = all(connection, sql, [ended_before.as_millis(), limit(count)], |row| number(row, 0))?;
    for campaign in old {
        if left == 0 {
            break;
        }
        left -= forget(connection, CampaignId::from_raw(campaign), left)?;
    }
    let sql = "DELETE FROM replies WHERE (app, key) IN
        (SELECT app, key FROM replies WHERE created_at < ?1 ORDER BY created_at LIMIT ?2)";
    left -= run(connection, sql, [replies_before.as_millis(), limit(left)])?;
    Ok((count - left) as u64)
}

fn release_all(
    connection: &Connection,
    shelf: &mut Shelf<'_>,
    count: usize,
    now: Timestamp,
) -> Done<Vec<Ticket>> {
    let mut released = Vec::new();
    for chunk in chunks::leases_over(connection, now, count)? {
        released.extend(lease::queue_again(connection, shelf, chunk, now, true)?);
    }
    Ok(released)
}

/// Ends queued chunks of campaigns past their ttl; those with ttl 0 have a grace for their one attempt.
fn expire(
    connection: &Connection,
    shelf: &mut Shelf<'_>,
    count: usize,
    now: Timestamp,
) -> Done<Vec<ChunkId>> {
    let sql = "SELECT k.id FROM campaigns k WHERE k.state IN (1, 2) AND k.expires_at <= ?1
        AND (k.expires_at > k.due_at OR k.expires_at + ?3 <= ?1)
        AND EXISTS (SELECT 1 FROM chunks c WHERE c.message = k.id AND c.state = 0) LIMIT ?2";
    let grace_ms = ZERO_TTL_GRACE.as_secs().cast_signed() * 1_000;
    let late = all(connection, sql, [now.as_millis(), limit(count), grace_ms], |row| number(row, 0))?;
    let verdict = (DeliveryState::Expired, Reason::TtlPassed);
    let mut expired: Vec<ChunkId> = Vec::new();
    for campaign in late {
        let most = count - expired.len();
        let id = CampaignId::from_raw(campaign);
        expired.extend(campaigns::end_queued(connection, shelf, id, verdict, (most, now))?);
    }
    Ok(expired)
}

/// Removes a campaign's chunks, and when none is left the rest of it; gives how many rows, at most so many.
pub(super) fn forget(connection: &Connection, campaign: CampaignId, count: usize) -> Done<usize> {
    let id = int(campaign.raw());
    let sql = "DELETE FROM chunks WHERE id IN (SELECT id FROM chunks WHERE message = ?1 LIMIT ?2)";
    let gone = run(connection, sql, [id, limit(count)])?;
    if gone == count {
        return Ok(gone);
    }
    sequences::advance(connection, "id", campaign.raw())?;
    run(connection, "DELETE FROM reasons WHERE campaign = ?1", [id])?;
    run(connection, "DELETE FROM ledgers WHERE campaign = ?1", [id])?;
    let sql = "DELETE FROM occurrences WHERE (schedule, instant) = (SELECT schedule, instant FROM messages WHERE id = ?1)";
    run(connection, sql, [id])?;
    run(connection, "DELETE FROM messages WHERE id = ?1", [id])?;
    run(connection, "DELETE FROM campaigns WHERE id = ?1", [id])?;
    Ok(gone + 1)
}
