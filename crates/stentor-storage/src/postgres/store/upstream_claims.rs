//! Which server hands a message of a device over: the one that claimed it, for as long as that is among the nodes.

use stentor_core::id::{AppId, UpstreamId};
use stentor_core::ports::store::{NodeEvent, Page};
use stentor_core::time::Timestamp;
use stentor_core::upstream::UpstreamMessage;

use super::node_events;
use super::upstream::{COLUMNS, WAITS, read};
use crate::postgres::engine::Connection;
use crate::sql::{Done, all, int, number, params, readable, run};

/// Returns what holds for messages that are nobody's, or the instance's of the place: who is taken for dead holds nothing.
fn is_free(place: &str) -> String {
    format!("(claimed_by IS NULL OR claimed_by = {place} OR claimed_by NOT IN (SELECT instance FROM nodes))")
}

/// Lists what waits and no other node holds, of kinds for which a condition holds.
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

/// Claims messages for a node and counts one more attempt; returns those that are its own now.
pub(super) fn claim(
    connection: &Connection,
    app: AppId,
    ids: &[UpstreamId],
    own: u64,
) -> Done<Vec<UpstreamId>> {
    // Asked by the statement that claims: of two nodes one gets a message, and a dead one none.
    let is_free = is_free("$3");
    let sql = format!(
        "UPDATE upstream SET attempts = attempts + 1, claimed_by = $3 WHERE {WAITS} AND app = $1 AND id = ANY($2) AND {is_free}
        AND EXISTS (SELECT 1 FROM nodes WHERE instance = $3) RETURNING id"
    );
    let values = params![int(app.raw()), raw(ids), int(own)];
    all(connection, &sql, values, |row| Ok(UpstreamId::from_raw(number(row, 0)?)))
}

/// Lets go of messages that a node has claimed; the others hear of it.
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
