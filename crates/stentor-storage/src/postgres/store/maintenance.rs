//! Deletion of old rows, a few at a time.

use crate::postgres::engine::Connection;

use super::sequences;
use crate::sql::{Done, limit, params, run};

/// Deletes chunks of campaigns, and the rest of the campaigns when no chunk is left. Returns the number of rows, at most `count`.
///
/// Each statement covers all of them: most campaigns are single messages, and a network round trip costs more than their rows.
pub(super) fn forget(connection: &Connection, campaigns: &[i64], count: usize) -> Done<usize> {
    if campaigns.is_empty() {
        return Ok(0);
    }
    // By a list, which always uses the index; a join might read all chunks.
    let sql =
        "DELETE FROM chunks WHERE id = ANY(ARRAY(SELECT id FROM chunks WHERE message = ANY($1) LIMIT $2))";
    let gone = run(connection, sql, params![campaigns.to_vec(), limit(count)])?;
    // No chunk is left of any: a deletion that left some would have used up the whole count.
    let empty = &campaigns[..campaigns.len().min(count - gone)];
    let Some(last) = empty.iter().max() else { return Ok(gone) };
    // Before the rows are deleted: an id is never issued again, and only these rows show the largest one issued.
    sequences::advance(connection, "id", last.unsigned_abs())?;
    for sql in [
        "DELETE FROM reasons WHERE campaign = ANY($1)",
        "DELETE FROM ledgers WHERE campaign = ANY($1)",
        "DELETE FROM occurrences o USING messages m WHERE m.id = ANY($1) AND o.schedule = m.schedule AND o.instant = m.instant",
        "DELETE FROM messages WHERE id = ANY($1)",
    ] {
        run(connection, sql, params![empty.to_vec()])?;
    }
    Ok(gone + run(connection, "DELETE FROM campaigns WHERE id = ANY($1)", params![empty.to_vec()])?)
}
