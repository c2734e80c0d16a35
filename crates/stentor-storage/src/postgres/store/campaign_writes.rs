//! Changes of many campaigns at once.

use crate::postgres::engine::Connection;
use stentor_core::campaign::CampaignState;
use stentor_core::id::{CampaignId, DeviceId};
use stentor_core::ledger::Finish;
use stentor_core::time::Timestamp;

use crate::sql::{Done, Value, int, run};

/// A campaign that begins: its state from then on, and the bound of its audience.
pub(super) type BegunCampaign = (CampaignId, CampaignState, DeviceId);

/// Stores the beginning of campaigns.
pub(super) fn write_begun(connection: &Connection, begun: &[BegunCampaign]) -> Done<()> {
    let sql = "UPDATE campaigns SET state = given.state, as_of = given.as_of
        FROM unnest($1::bigint[], $2::smallint[], $3::bigint[]) given (id, state, as_of) WHERE campaigns.id = given.id";
    let values = vec![
        Value::ints(begun, |(id, ..)| int(id.raw())),
        Value::ints(begun, |(_, state, _)| state.code().into()),
        Value::ints(begun, |(.., as_of)| int(as_of.raw())),
    ];
    run(connection, sql, values).map(drop)
}

/// Stores the time of the first lease of campaigns, unless it is stored already.
pub(super) fn write_started(connection: &Connection, started: &[(CampaignId, Timestamp)]) -> Done<()> {
    let sql =
        "UPDATE campaigns SET started_at = given.at FROM unnest($1::bigint[], $2::bigint[]) given (id, at)
        WHERE campaigns.id = given.id AND started_at IS NULL";
    let values =
        vec![Value::ints(started, |(id, _)| int(id.raw())), Value::ints(started, |(_, at)| at.as_millis())];
    run(connection, sql, values).map(drop)
}

/// The end of a campaign, and its time.
pub(super) type EndedCampaign = (CampaignId, Finish, Timestamp);

/// Writes the ends of campaigns, even if other columns are damaged.
pub(super) fn write_ends(connection: &Connection, ended: &[EndedCampaign]) -> Done<()> {
    let sql = "UPDATE campaigns SET ended_at = given.at, state = given.state,
            stop_reason = coalesce(given.stop_reason, campaigns.stop_reason),
            stop_detail = coalesce(given.stop_detail, campaigns.stop_detail)
        FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::smallint[], $5::text[])
            given (id, at, state, stop_reason, stop_detail)
        WHERE campaigns.id = given.id";
    let values = vec![
        Value::ints(ended, |(id, ..)| int(id.raw())),
        Value::ints(ended, |(.., at)| at.as_millis()),
        Value::ints(ended, |(_, end, _)| end.state.code().into()),
        Value::maybe_ints(ended, |(_, end, _)| end.stop.as_ref().map(|stop| stop.reason.code().into())),
        Value::texts(ended, |(_, end, _)| end.stop.as_ref().map(|stop| stop.detail.clone())),
    ];
    run(connection, sql, values).map(drop)
}
