//! Deletion of old rows, a few at a time.

use rusqlite::Connection;
use stentor_core::device::ProviderKind;
use stentor_core::id::CampaignId;
use stentor_core::time::Timestamp;

use super::campaigns::raw_id;
use super::sequences;
use crate::sql::{Done, all, int, limit, params, run};

/// Deletes old campaigns and replies, at most `count` rows.
pub(super) fn prune(
    connection: &Connection,
    ended_before: Timestamp,
    replies_before: Timestamp,
    count: usize,
) -> Done<u64> {
    let mut left = count;
    // Messages that devices may still fetch are kept: accepted, unconfirmed and unexpired ones, and those that may be the last state of a
    // topic.
    let sql = "SELECT id FROM campaigns k WHERE ended_at < ?1 AND (expires_at < ?1 OR retained_topic IS NULL AND NOT EXISTS
        (SELECT 1 FROM ledgers WHERE campaign = k.id AND provider = ?3 AND accepted > delivered))
        ORDER BY ended_at LIMIT ?2";
    let values = params![ended_before.as_millis(), limit(count), ProviderKind::Gateway.code()];
    let old = all(connection, sql, values, raw_id)?;
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

/// Deletes a campaign's chunks, and the rest of it when no chunk is left. Returns the number of rows, at most `count`.
pub(super) fn forget(connection: &Connection, campaign: CampaignId, count: usize) -> Done<usize> {
    let id = int(campaign.raw());
    let sql = "DELETE FROM chunks WHERE id IN (SELECT id FROM chunks WHERE message = ?1 LIMIT ?2)";
    let gone = run(connection, sql, [id, limit(count)])?;
    // The campaign is deleted after its last chunk, so that an interrupted deletion is found again.
    if gone == count {
        return Ok(gone);
    }
    // The largest id ever issued is stored, so that no start issues the id of a deleted row again.
    sequences::advance(connection, "id", campaign.raw())?;
    run(connection, "DELETE FROM reasons WHERE campaign = ?1", [id])?;
    run(connection, "DELETE FROM ledgers WHERE campaign = ?1", [id])?;
    let sql = "DELETE FROM occurrences WHERE (schedule, instant) = (SELECT schedule, instant FROM messages WHERE id = ?1)";
    run(connection, sql, [id])?;
    run(connection, "DELETE FROM messages WHERE id = ?1", [id])?;
    run(connection, "DELETE FROM campaigns WHERE id = ?1", [id])?;
    Ok(gone + 1)
}
