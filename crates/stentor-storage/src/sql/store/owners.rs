//! The owners of devices.

use crate::sql::{Connection, Done, damaged, int, one, params, run, time};
use stentor_core::id::AppId;
use stentor_core::name::ExternalId;
use stentor_core::time::Timestamp;

/// Finds a user: its number, and the time of its first mention.
pub(crate) fn find(connection: &Connection, app: AppId, user: &ExternalId) -> Done<Option<(i64, Timestamp)>> {
    let sql = "SELECT no, created_at FROM users WHERE app = ?1 AND external_id = ?2";
    one(connection, sql, params![int(app.raw()), user.as_str()], |row| Ok((row.get(0)?, time(row, 1)?)))
}

/// Finds a user or creates it.
pub(crate) fn ensure(connection: &Connection, app: AppId, user: &ExternalId, now: Timestamp) -> Done<i64> {
    if let Some((no, _)) = find(connection, app, user)? {
        return Ok(no);
    }
    let sql = "INSERT INTO users (app, external_id, created_at) VALUES (?1, ?2, ?3) RETURNING no";
    let values = params![int(app.raw()), user.as_str(), now.as_millis()];
    one(connection, sql, values, |row| row.get(0))?.ok_or_else(|| damaged("a person without a number"))
}

/// Moves a device from one owner to another in the table of devices by owner.
pub(crate) fn move_device(connection: &Connection, key: i64, from: Option<i64>, to: Option<i64>) -> Done<()> {
    if from == to {
        return Ok(());
    }
    if let Some(user) = from {
        run(connection, "DELETE FROM user_devices WHERE owner = ?1 AND key = ?2", [user, key])?;
    }
    if let Some(user) = to {
        run(
            connection,
            "INSERT INTO user_devices (owner, key) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            [user, key],
        )?;
    }
    Ok(())
}
