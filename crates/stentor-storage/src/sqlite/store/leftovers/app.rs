//! The leftovers of an app: its devices, fleet by fleet, and all rows with its number.

use rusqlite::Connection;
use stentor_core::device::{ProviderKind, PushToken};
use stentor_core::id::{AppId, CampaignId, DeviceId};

use super::{AT_ONCE_MAX_COUNT, Leftover, delete, group, person, topic};
use crate::sql::store::device_traces;
use crate::sql::{Done, Portion, Row, all, damaged, int, number, one, params, readable, run};
use crate::sqlite::store::app_providers::AppProvider;
use crate::sqlite::store::{maintenance, tokens};

/// Rows that a campaign loses at once.
const OF_CAMPAIGN_MAX_COUNT: usize = 64;

type AppWork = fn(&Connection, i64, &Portion<'_>) -> Done<bool>;

/// Deletes the rows of a removed app. Rows that could still start work go first.
pub(super) fn rest(connection: &Connection, app: i64, portion: &Portion<'_>) -> Done<bool> {
    const OF_SCHEDULE: &str = "DELETE FROM occurrences WHERE (schedule, instant) IN
        (SELECT schedule, instant FROM occurrences WHERE schedule = ?1 LIMIT ?2)";
    let schedule: AppWork = |connection, no, portion| delete(connection, &[OF_SCHEDULE], no, portion);
    let each: [(&str, AppWork, &str); 5] = [
        ("SELECT id FROM schedules WHERE app = ?1 LIMIT 1", schedule, "DELETE FROM schedules WHERE id = ?1"),
        ("SELECT id FROM campaigns WHERE app = ?1 LIMIT 1", campaign, "DELETE FROM campaigns WHERE id = ?1"),
        ("SELECT no FROM topics WHERE app = ?1 LIMIT 1", topic, "DELETE FROM topics WHERE no = ?1"),
        ("SELECT no FROM groups WHERE app = ?1 LIMIT 1", group, "DELETE FROM groups WHERE no = ?1"),
        ("SELECT no FROM users WHERE app = ?1 LIMIT 1", person, "DELETE FROM users WHERE no = ?1"),
    ];
    for (next, work, end) in each {
        while let Some(no) = one(connection, next, [app], |row| row.get::<i64>(0))? {
            if portion.is_over() || !work(connection, no, portion)? {
                return Ok(false);
            }
            run(connection, end, [no])?;
        }
    }
    let rows = [
        "DELETE FROM device_tags WHERE (app, tag, key) IN
            (SELECT app, tag, key FROM device_tags WHERE app = ?1 LIMIT ?2)",
        "DELETE FROM replies WHERE (app, key) IN (SELECT app, key FROM replies WHERE app = ?1 LIMIT ?2)",
        "DELETE FROM api_keys WHERE id IN (SELECT id FROM api_keys WHERE app = ?1 LIMIT ?2)",
        "DELETE FROM accounts WHERE id IN (SELECT id FROM accounts WHERE app = ?1 LIMIT ?2)",
    ];
    for sql in rows {
        if !delete(connection, &[sql], app, portion)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Deletes a campaign with its chunks.
fn campaign(connection: &Connection, id: i64, portion: &Portion<'_>) -> Done<bool> {
    // A campaign that is being deleted is not expanded.
    run(connection, "DELETE FROM producers WHERE campaign = ?1", [id])?;
    while !portion.is_over() {
        let gone =
            maintenance::forget(connection, CampaignId::from_raw(id.unsigned_abs()), OF_CAMPAIGN_MAX_COUNT)?;
        if gone < OF_CAMPAIGN_MAX_COUNT {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes the devices of a removed app at a provider, with the hashes of their tokens.
pub(super) fn fleet(connection: &Connection, left: Leftover, portion: &Portion<'_>) -> Done<bool> {
    let provider = u8::try_from(left.cursor).ok().and_then(ProviderKind::from_code);
    let provider = provider.ok_or_else(|| damaged("a fleet of no provider"))?;
    let app = AppId::from_raw(left.other.unsigned_abs());
    let fleet = AppProvider { no: left.no.unsigned_abs(), app, provider };
    let (first, last) = (fleet.bound(DeviceId::from_raw(0)), fleet.bound(DeviceId::from_raw(u64::MAX)));
    let next = "SELECT key, token FROM devices WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3";
    while !portion.is_over() {
        let some = params![first, last, AT_ONCE_MAX_COUNT as i64];
        let mut devices: Vec<(i64, Option<i64>)> = all(connection, next, some, |row| {
            // A token that cannot be read leaves its hash behind; no lookup finds it.
            let token = row.get::<String>(1).ok().and_then(|token| PushToken::new(token).ok());
            Ok((row.get(0)?, token.map(|token| tokens::hash(app, provider, &token))))
        })?;
        if devices.is_empty() {
            return Ok(true);
        }
        // In order of hash neighbours lie in one leaf, which is then written once.
        devices.sort_unstable_by_key(|(_, hash)| *hash);
        for (key, hash) in devices {
            if portion.is_over() {
                return Ok(false);
            }
            device_traces::forget_with_messages(connection, fleet.provider, &[key])?;
            remove_device(connection, key, hash)?;
        }
    }
    Ok(false)
}

fn remove_device(connection: &Connection, key: i64, hash: Option<i64>) -> Done<()> {
    if let Some(hash) = hash {
        tokens::forget(connection, [(hash, key)])?;
    }
    run(connection, "DELETE FROM subscriptions WHERE key = ?1", [key])?;
    run(connection, "DELETE FROM devices WHERE key = ?1", [key]).map(drop)
}

/// Records the fleets of an app as leftovers, and deletes their rows, so that no lookup finds them.
pub(in crate::sqlite::store) fn leave_fleets(connection: &Connection, app: i64) -> Done<()> {
    let sql = "SELECT no, provider FROM fleets WHERE app = ?1";
    let read = |row: &Row<'_>| Ok((number(row, 0)?, row.get::<i64>(1)?));
    // An unreadable fleet row identifies no devices.
    let (fleets, _) = readable(connection, "fleets", (sql, [app]), usize::MAX, read)?;
    for (no, provider) in fleets {
        let no = int(no);
        Leftover { kind: super::LeftoverKind::Fleet, no, other: app, cursor: provider }.note(connection)?;
    }
    run(connection, "DELETE FROM fleets WHERE app = ?1", [app]).map(drop)
}
