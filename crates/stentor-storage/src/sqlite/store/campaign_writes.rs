//! Changes of campaigns.

use rusqlite::Connection;
use stentor_core::campaign::CampaignState;
use stentor_core::id::{CampaignId, DeviceId};
use stentor_core::ledger::Finish;
use stentor_core::time::Timestamp;

use super::campaigns::force;
use crate::sql::{Done, int, params, run};

/// Sets the state of a campaign that begins, and the bound of its audience.
pub(super) fn write_begun(
    connection: &Connection,
    id: CampaignId,
    state: CampaignState,
    as_of: DeviceId,
) -> Done<()> {
    let sql = "UPDATE campaigns SET state = ?2, as_of = ?3 WHERE id = ?1";
    run(connection, sql, params![int(id.raw()), state.code(), int(as_of.raw())]).map(drop)
}

/// Stores the time of the first lease.
pub(super) fn write_started(connection: &Connection, id: CampaignId, now: Timestamp) -> Done<()> {
    let sql = "UPDATE campaigns SET started_at = ?2 WHERE id = ?1 AND started_at IS NULL";
    run(connection, sql, [int(id.raw()), now.as_millis()]).map(drop)
}

/// Writes the end of a campaign, even if other columns are damaged.
pub(super) fn write_end(connection: &Connection, id: CampaignId, end: &Finish, now: Timestamp) -> Done<()> {
    let sql = "UPDATE campaigns SET ended_at = ?2, state = ?3, stop_reason = coalesce(?4, stop_reason),
        stop_detail = coalesce(?5, stop_detail) WHERE id = ?1";
    let stop = end.stop.as_ref();
    let (reason, detail) = (stop.map(|stop| stop.reason.code()), stop.map(|stop| stop.detail.as_str()));
    force(connection, id, sql, params![int(id.raw()), now.as_millis(), end.state.code(), reason, detail])
}
