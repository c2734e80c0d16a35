//! Who owns a device.

use std::collections::{BTreeSet, HashMap};

use crate::postgres::engine::{Connection, Value, params};
use stentor_core::id::AppId;
use stentor_core::name::ExternalId;
use stentor_core::time::Timestamp;

use crate::postgres::fault::{Done, damaged};
use crate::postgres::query::{all, one, run};
use crate::postgres::row::{int, time};

/// Finds a person: number, and when first named.
pub(super) fn find(connection: &Connection, app: AppId, user: &ExternalId) -> Done<Option<(i64, Timestamp)>> {
    let sql = "SELECT no, created_at FROM users WHERE app = $1 AND external_id = $2";
    one(connection, sql, params![int(app.raw()), user.as_str()], |row| Ok((row.get(0)?, time(row, 1)?)))
}

/// Finds a person or makes them known.
pub(super) fn ensure(connection: &Connection, app: AppId, user: &ExternalId, now: Timestamp) -> Done<i64> {
    if let Some((no, _)) = find(connection, app, user)? {
        return Ok(no);
    }
    let sql = "INSERT INTO users (app, external_id, created_at) VALUES ($1, $2, $3) RETURNING no";
    let values = params![int(app.raw()), user.as_str(), now.as_millis()];
    one(connection, sql, values, |row| row.get(0))?.ok_or_else(|| damaged("a person without a number"))
}

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

/// Moves a device from one owner to another in the list of who owns what.
pub(super) fn move_device(connection: &Connection, key: i64, from: Option<i64>, to: Option<i64>) -> Done<()> {
    if from == to {
        return Ok(());
    }
    if let Some(user) = from {
        run(connection, "DELETE FROM user_devices WHERE owner = $1 AND key = $2", [user, key])?;
    }
    if let Some(user) = to {
        run(
            connection,
            "INSERT INTO user_devices (owner, key) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            [user, key],
        )?;
    }
    Ok(())
}
