//! What must be done from time to time, and at start.

use rusqlite::{Connection, Row};
use stentor_core::delivery::DeliveryState;
use stentor_core::id::{CampaignId, ChunkId};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{Recovery, Swept};
use stentor_core::time::Timestamp;

use super::chunks::ChunkState;
use super::lost::Lost;
use super::{aside, books, campaigns, chunks, lease, sequences};
use crate::sqlite::fault::Done;
use crate::sqlite::query::{all, limit, run};
use crate::sqlite::row::int;
use stentor_core::ledger::ZERO_TTL_GRACE;

/// Releases what dead processes had leased.
pub(super) fn recover(
    connection: &Connection,
    instance: u64,
    (lost, now): (&Lost, Timestamp),
) -> Done<Recovery> {
    let ids = chunks::leased(connection)?;
    let released = aside::with_each(connection, (&ids, ChunkState::Leased), (lost, now), |shelf, chunk| {
        let count = chunk.count as u64;
        if chunks::is_leased_by(connection, chunk.id, instance)? {
            return Ok(None);
        }
        lease::queue_again(connection, shelf, chunk, now, true).map(|_| Some(count))
    })?;
    let released: Vec<u64> = released.into_iter().flatten().collect();
    Ok(Recovery { chunks: released.len() as u64, deliveries: released.iter().sum() })
}

/// Ends what is too late and releases leases that ran out.
pub(super) fn sweep(connection: &Connection, count: usize, (lost, now): (&Lost, Timestamp)) -> Done<Swept> {
    let ids = chunks::leases_over(connection, now, count)?;
    let released = aside::with_each(connection, (&ids, ChunkState::Leased), (lost, now), |shelf, chunk| {
        lease::queue_again(connection, shelf, chunk, now, true)
    })?;
    let expired = expire(connection, count, (lost, now))?;
    if !lost.has_any() {
        // It looks at chunks' own rows.
        end_forsaken(connection, count, now)?;
    }
    let released = released.into_iter().flatten();
    let released = released.filter(|ticket| !expired.contains(&ticket.chunk)).collect();
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
    let old = all(connection, sql, [ended_before.as_millis(), limit(count)], campaign)?;
    for campaign in old {
        if left == 0 {
            break;
        }
        left -= forget(connection, campaign, left)?;
    }
    let sql = "DELETE FROM replies WHERE (app, key) IN
        (SELECT app, key FROM replies WHERE created_at < ?1 ORDER BY created_at LIMIT ?2)";
    left -= run(connection, sql, [replies_before.as_millis(), limit(left)])?;
    Ok((count - left) as u64)
}

/// Reads the id that is a row's own number, whatever the rest of the row is.
fn campaign(row: &Row<'_>) -> Done<CampaignId> {
    Ok(CampaignId::from_raw(row.get::<_, i64>(0)?.cast_unsigned()))
}

/// Ends queued chunks of campaigns past their ttl; those with ttl 0 have a grace for their one attempt.
fn expire(connection: &Connection, count: usize, (lost, now): (&Lost, Timestamp)) -> Done<Vec<ChunkId>> {
    let sql = "SELECT k.id FROM campaigns k WHERE k.state IN (1, 2) AND k.expires_at <= ?1
        AND (k.expires_at > k.due_at OR k.expires_at + ?3 <= ?1)
        AND EXISTS (SELECT 1 FROM chunks c WHERE c.message = k.id AND c.state = 0) LIMIT ?2";
    let grace_ms = ZERO_TTL_GRACE.as_secs().cast_signed() * 1_000;
    let late = all(connection, sql, [now.as_millis(), limit(count), grace_ms], campaign)?;
    let verdict = (DeliveryState::Expired, Reason::TtlPassed);
    let mut queued: Vec<ChunkId> = Vec::new();
    for campaign in late {
        queued.extend(chunks::queued_of(connection, campaign, count - queued.len())?);
    }
    campaigns::end_queued(connection, &queued, verdict, (lost, now))
}

/// Ends campaigns past their ttl that have nothing open any more and whose books or producers say otherwise: what they
/// counted on could not be read and was taken away.
fn end_forsaken(connection: &Connection, count: usize, now: Timestamp) -> Done<()> {
    let sql = "SELECT k.id FROM campaigns k WHERE k.state IN (1, 2) AND k.as_of IS NOT NULL AND k.expires_at <= ?1
        AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.message = k.id AND c.state IN (0, 1))
        AND NOT EXISTS (SELECT 1 FROM producers p JOIN fleets f ON f.no = p.fleet WHERE p.campaign = k.id) LIMIT ?2";
    let expired_by = now.minus(ZERO_TTL_GRACE).as_millis();
    for id in all(connection, sql, [expired_by, limit(count)], campaign)? {
        run(connection, "DELETE FROM producers WHERE campaign = ?1", [int(id.raw())])?;
        books::write_off(connection, int(id.raw()), None, now)?;
    }
    Ok(())
}

/// Removes a campaign's chunks, and when none is left the rest of it; returns how many rows, at most so many.
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
