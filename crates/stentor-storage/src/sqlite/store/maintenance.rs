//! Deletion of old rows, a few at a time.

use rusqlite::Connection;
use stentor_core::id::CampaignId;

use super::sequences;
use crate::sql::{Done, int, limit, run};

/// Deletes chunks of campaigns, and the rest of each campaign of which no chunk is left. Returns the number of rows, at most `count`.
pub(super) fn forget_all(connection: &Connection, campaigns: &[CampaignId], count: usize) -> Done<usize> {
    let mut gone = 0;
    for campaign in campaigns {
        if gone == count {
            break;
        }
        gone += forget(connection, *campaign, count - gone)?;
    }
    Ok(gone)
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
