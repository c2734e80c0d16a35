//! What must be done from time to time, and at start.

use rusqlite::Connection;
use stentor_core::id::CampaignId;
use stentor_core::ledger::{self, LedgerRows, ZERO_TTL_GRACE};
use stentor_core::ports::store::Swept;
use stentor_core::time::Timestamp;

use super::campaigns::raw_id;
use super::codes::{LEASED, PAUSED, QUEUED, RUNNING};
use super::lost::Lost;
use super::rows::Rows;
use super::{books, sequences};
use crate::sqlite::fault::Done;
use crate::sqlite::query::{all, limit, run};
use crate::sqlite::row::int;

/// Ends what is too late and releases leases that ran out.
pub(super) fn sweep(connection: &Connection, count: usize, (lost, now): (&Lost, Timestamp)) -> Done<Swept> {
    let mut rows = Rows::around(connection, lost);
    let swept = ledger::sweep(&mut rows, count, now)?;
    if !lost.has_any() {
        // It looks at chunks' own rows.
        end_forsaken(&mut rows, count, now)?;
    }
    Ok(swept)
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
    let old = all(connection, sql, [ended_before.as_millis(), limit(count)], raw_id)?;
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

/// Ends campaigns past their ttl that have nothing open any more and whose books or producers say otherwise: what they
/// counted on could not be read and was taken away.
fn end_forsaken(rows: &mut Rows<'_>, count: usize, now: Timestamp) -> Done<()> {
    let sql = format!(
        "SELECT k.id FROM campaigns k WHERE k.state IN ({RUNNING}, {PAUSED}) AND k.as_of IS NOT NULL AND k.expires_at <= ?1
        AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.message = k.id AND c.state IN ({QUEUED}, {LEASED}))
        AND NOT EXISTS (SELECT 1 FROM producers p JOIN fleets f ON f.no = p.fleet WHERE p.campaign = k.id) LIMIT ?2"
    );
    let expired_by = now.minus(ZERO_TTL_GRACE).as_millis();
    for id in all(rows.connection, &sql, [expired_by, limit(count)], raw_id)? {
        rows.end_producers(id, None)?;
        books::write_off(rows, int(id.raw()), None, now)?;
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
