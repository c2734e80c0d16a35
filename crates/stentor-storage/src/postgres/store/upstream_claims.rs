//! Claims of devices' messages: the node that claimed a message delivers it, as long as it is among the nodes.

use stentor_core::id::{AppId, UpstreamId};
use stentor_core::ports::store::{NodeEvent, Page};
use stentor_core::time::Timestamp;
use stentor_core::upstream::UpstreamMessage;

use super::node_events;
use super::upstream::{COLUMNS, WAITS, read};
use crate::postgres::engine::Connection;
use crate::sql::{Done, all, int, number, params, readable, run};

/// Returns the condition for messages that are unclaimed, or claimed by the instance at the place or by a node that is gone.
fn is_free(place: &str) -> String {
    format!("(claimed_by IS NULL OR claimed_by = {place} OR claimed_by NOT IN (SELECT instance FROM nodes))")
}

/// Lists waiting messages that no other node has claimed, of the kinds that a condition selects.
pub(super) fn free(
    connection: &Connection,
    (app, page, now): (AppId, Page, Timestamp),
    kinds: &str,
    own: Option<u64>,
) -> Done<Vec<UpstreamMessage>> {
    let is_free = is_free("$4");
    let sql = format!(
        "SELECT {COLUMNS} FROM upstream WHERE {WAITS} AND app = $1 AND id > $2 AND expires_at > $3 AND {kinds} AND {is_free}
        ORDER BY id"
    );
    let values = params![int(app.raw()), int(page.after), now.as_millis(), own.map(int)];
    Ok(readable(connection, "upstream", (&sql, values), page.limit, read)?.0)
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

/// Releases the claims of a node; the other nodes are informed.
pub(super) fn let_go(connection: &Connection, app: AppId, ids: &[UpstreamId], own: u64) -> Done<()> {
    let sql = format!(
        "UPDATE upstream SET claimed_by = NULL WHERE {WAITS} AND app = $1 AND id = ANY($2) AND claimed_by = $3"
    );
    if run(connection, &sql, params![int(app.raw()), raw(ids), int(own)])? > 0 {
        node_events::publish(connection, own, [NodeEvent::Upstream(app)]);
    }
    Ok(())
}

fn raw(ids: &[UpstreamId]) -> Vec<i64> {
    ids.iter().map(|id| int(id.raw())).collect()
}
