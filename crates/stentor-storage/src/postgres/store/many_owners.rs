//! People of many devices at once.

use std::collections::{BTreeSet, HashMap};

use stentor_core::id::AppId;
use stentor_core::name::ExternalId;
use stentor_core::time::Timestamp;

use crate::postgres::engine::Connection;
use crate::sql::{Done, Value, all, int, params, run};

/// Finds persons or makes them known, all with two statements.
pub(super) fn ensure_all<'a>(
    connection: &Connection,
    app: AppId,
    users: &BTreeSet<&'a ExternalId>,
    now: Timestamp,
) -> Done<HashMap<&'a ExternalId, i64>> {
    if users.is_empty() {
        return Ok(HashMap::new());
    }
    let names = Value::Texts(users.iter().map(|user| Some(user.as_str().to_owned())).collect());
    let sql =
        "INSERT INTO users (app, external_id, created_at) SELECT $1, name, $3 FROM unnest($2::text[]) name
        WHERE NOT EXISTS (SELECT 1 FROM users WHERE app = $1 AND external_id = name) ON CONFLICT DO NOTHING";
    let app = int(app.raw());
    run(connection, sql, params![app, names.clone(), now.as_millis()])?;
    let sql =
        "SELECT external_id, no FROM users WHERE app = $1 AND external_id = ANY($2) ORDER BY external_id";
    let numbers = all(connection, sql, params![app, names], |row| row.get(1))?;
    // Both are in the order of their bytes.
    Ok(users.iter().copied().zip(numbers).collect())
}
