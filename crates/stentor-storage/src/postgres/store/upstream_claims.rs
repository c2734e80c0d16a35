//! Claims of devices' messages: the node that claimed a message delivers it, as long as it is among the nodes.

use stentor_core::id::{AppId, UpstreamId};
use stentor_core::ports::store::NodeEvent;

use super::node_events;
use super::upstream::WAITS;
use crate::postgres::engine::Connection;
use crate::sql::{Done, all, int, number, params, run};

/// Returns the condition for messages that are unclaimed, or claimed by the instance at the place or by a node that is gone.
pub(super) fn is_free(place: &str) -> String {
    format!("(claimed_by IS NULL OR claimed_by = {place} OR claimed_by NOT IN (SELECT instance FROM nodes))")
}

/// Claims messages for a node and counts one more attempt; returns the messages claimed.
pub(super) fn claim(
    connection: &Connection,
    app: AppId,
    ids: &[UpstreamId],
    own: u64,
) -> Done<Vec<UpstreamId>> {
    // Checked by the claiming statement: of two nodes only one gets a message, and a dead node gets none.
    let is_free = is_free("$3");
    let sql = format!(
        "UPDATE upstream SET attempts = attempts + 1, claimed_by = $3 WHERE {WAITS} AND app = $1 AND id = ANY($2) AND {is_free}
        AND EXISTS (SELECT 1 FROM nodes WHERE instance = $3) RETURNING id"
    );
    let values = params![int(app.raw()), raw(ids), int(own)];
    all(connection, &sql, values, |row| Ok(UpstreamId::from_raw(number(row, 0)?)))
}

/// Releases the claims of a node; the other nodes are informed. Returns the number of claims.
pub(super) fn release(connection: &Connection, app: AppId, ids: &[UpstreamId], own: u64) -> Done<u64> {
    let sql = format!(
        "UPDATE upstream SET claimed_by = NULL WHERE {WAITS} AND app = $1 AND id = ANY($2) AND claimed_by = $3"
    );
    let released = run(connection, &sql, params![int(app.raw()), raw(ids), int(own)])?;
    if released > 0 {
        node_events::publish(connection, own, [NodeEvent::Upstream(app)]);
    }
    Ok(released as u64)
}

fn raw(ids: &[UpstreamId]) -> Vec<i64> {
    ids.iter().map(|id| int(id.raw())).collect()
}
