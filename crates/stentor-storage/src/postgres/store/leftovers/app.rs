//! The leftovers of an app: its devices, fleet by fleet, and all rows with its number.

use stentor_core::id::{AppId, DeviceId};

use super::{AT_ONCE_MAX_COUNT, delete, group, person, topic};
use crate::postgres::engine::Connection;
use crate::postgres::store::app_providers::{self, AppProvider};
use crate::postgres::store::maintenance;
use crate::sql::store::device_traces;
use crate::sql::{Done, Portion, all, limit, one, params, run};

type AppWork = fn(&Connection, i64, &Portion<'_>) -> Done<bool>;

/// Deletes the rows of a removed app. Rows that could still start work go first; fleets go last, because the devices are found by them.
pub(super) fn rest(connection: &Connection, app: i64, portion: &Portion<'_>) -> Done<bool> {
    let schedules = [(
        "SELECT id FROM schedules WHERE app = $1 LIMIT 1",
        schedule as AppWork,
        "DELETE FROM schedules WHERE id = $1",
    )];
    if !each_of(connection, app, &schedules, portion)? || !campaigns(connection, app, portion)? {
        return Ok(false);
    }
    let named: [(&str, AppWork, &str); 3] = [
        ("SELECT no FROM topics WHERE app = $1 LIMIT 1", topic, "DELETE FROM topics WHERE no = $1"),
        ("SELECT no FROM groups WHERE app = $1 LIMIT 1", group, "DELETE FROM groups WHERE no = $1"),
        ("SELECT no FROM users WHERE app = $1 LIMIT 1", person, "DELETE FROM users WHERE no = $1"),
    ];
    if !each_of(connection, app, &named, portion)? {
        return Ok(false);
    }
    let rows = [
        "DELETE FROM device_tags WHERE (app, tag, key) IN
            (SELECT app, tag, key FROM device_tags WHERE app = $1 LIMIT $2)",
        "DELETE FROM replies WHERE (app, key) IN (SELECT app, key FROM replies WHERE app = $1 LIMIT $2)",
        "DELETE FROM api_keys WHERE id IN (SELECT id FROM api_keys WHERE app = $1 LIMIT $2)",
        "DELETE FROM accounts WHERE id IN (SELECT id FROM accounts WHERE app = $1 LIMIT $2)",
    ];
    for sql in rows {
        if !delete(connection, sql, app, portion)? {
            return Ok(false);
        }
    }
    for one in app_providers::of_app(connection, AppId::from_raw(app.unsigned_abs()))? {
        if !fleet(connection, one, portion)? {
            return Ok(false);
        }
    }
    run(connection, "DELETE FROM fleets WHERE app = $1", [app])?;
    Ok(true)
}

/// Removes things one by one with their dependent rows: each kind has a query for the next one, the work on it, and a final statement.
/// Returns true if none is left.
fn each_of(
    connection: &Connection,
    app: i64,
    kinds: &[(&str, AppWork, &str)],
    portion: &Portion<'_>,
) -> Done<bool> {
    for (next, work, end) in kinds {
        while let Some(no) = one(connection, next, [app], |row| row.get::<i64>(0))? {
            if portion.is_over() || !work(connection, no, portion)? {
                return Ok(false);
            }
            run(connection, end, [no])?;
        }
    }
    Ok(true)
}

fn schedule(connection: &Connection, no: i64, portion: &Portion<'_>) -> Done<bool> {
    let sql = "DELETE FROM occurrences WHERE (schedule, instant) IN
        (SELECT schedule, instant FROM occurrences WHERE schedule = $1 LIMIT $2)";
    delete(connection, sql, no, portion)
}

/// Deletes the campaigns of a removed app with their chunks; returns true if none is left.
fn campaigns(connection: &Connection, app: i64, portion: &Portion<'_>) -> Done<bool> {
    let next = "SELECT id FROM campaigns WHERE app = $1 LIMIT $2";
    while !portion.is_over() {
        let ids: Vec<i64> = all(connection, next, [app, limit(AT_ONCE_MAX_COUNT)], |row| row.get(0))?;
        if ids.is_empty() {
            return Ok(true);
        }
        run(connection, "DELETE FROM producers WHERE campaign = ANY($1)", params![ids.clone()])?;
        maintenance::forget(connection, &ids, AT_ONCE_MAX_COUNT)?;
    }
    Ok(false)
}

/// Removes the devices of a removed app at a provider.
fn fleet(connection: &Connection, fleet: AppProvider, portion: &Portion<'_>) -> Done<bool> {
    let (first, last) = (fleet.bound(DeviceId::from_raw(0)), fleet.bound(DeviceId::from_raw(u64::MAX)));
    let next = "SELECT key FROM devices WHERE key BETWEEN $1 AND $2 ORDER BY key LIMIT $3";
    while !portion.is_over() {
        let some = [first, last, limit(AT_ONCE_MAX_COUNT)];
        let keys: Vec<i64> = all(connection, next, some, |row| row.get(0))?;
        let is_last = keys.len() < AT_ONCE_MAX_COUNT;
        device_traces::forget_with_messages(connection, fleet.provider, &keys)?;
        for sql in [
            "DELETE FROM subscriptions WHERE key = ANY($1)",
            "DELETE FROM group_devices WHERE key = ANY($1)",
            "DELETE FROM devices WHERE key = ANY($1)",
        ] {
            run(connection, sql, params![keys.clone()])?;
        }
        if is_last {
            return Ok(true);
        }
    }
    Ok(false)
}
