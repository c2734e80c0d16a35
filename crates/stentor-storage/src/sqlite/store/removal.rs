//! Removing a device, or an app with all that belongs to it.

use rusqlite::{Connection, params};
use stentor_core::device::PushToken;
use stentor_core::id::{AppId, DeviceId};

use super::apps::found;
use super::fleets::{self, Fleet};
use super::{devices, members, sequences, tokens, topics};
use crate::sqlite::fault::{Done, missing};
use crate::sqlite::query::{all, one, run};
use crate::sqlite::row::{int, number, text};

/// What a device leaves behind in other tables.
struct Traces {
    token: PushToken,
    user: Option<i64>,
    tags: Option<String>,
    active: bool,
}

/// Removes one device with its subscriptions and memberships; its deliveries stay in the ledger.
pub(super) fn device(connection: &Connection, fleet: Fleet, key: i64) -> Done<()> {
    let sql = "SELECT token, user, tags, listed = 1 AND retired_at IS NULL FROM devices WHERE key = ?1";
    let read = |row: &rusqlite::Row<'_>| {
        let token = text(row, 0, PushToken::new)?;
        Ok(Traces { token, user: row.get(1)?, tags: row.get(2)?, active: row.get(3)? })
    };
    let traces = one(connection, sql, [key], read)?.ok_or(missing("device"))?;
    tokens::forget(connection, tokens::hash(fleet.app, fleet.provider, &traces.token), key)?;
    if let Some(user) = traces.user {
        run(connection, "DELETE FROM user_devices WHERE user = ?1 AND key = ?2", [user, key])?;
    }
    devices::change_tags(connection, fleet.app, key, traces.tags.as_deref(), None)?;
    topics::drop_device(connection, key)?;
    members::remove_device(connection, key)?;
    run(connection, "DELETE FROM devices WHERE key = ?1", [key])?;
    fleets::count_active(connection, fleet.no, -i64::from(traces.active))
}

/// Removes an app with all that belongs to it.
pub(super) fn app(connection: &Connection, app: AppId) -> Done<()> {
    let id = int(app.raw());
    found(run(connection, "DELETE FROM apps WHERE id = ?1", [id])?, "app")?;
    remember_ids(connection, app)?;
    for fleet in fleets::of_app(connection, app)? {
        remove_fleet(connection, fleet)?;
    }
    for sql in OF_CAMPAIGNS.iter().chain(OF_APP) {
        run(connection, sql, [id])?;
    }
    Ok(())
}

/// What hangs on an app's campaigns, groups, users, topics and schedules, before those go themselves.
const OF_CAMPAIGNS: &[&str] = &[
    "DELETE FROM chunks WHERE message IN (SELECT id FROM campaigns WHERE app = ?1)",
    "DELETE FROM producers WHERE campaign IN (SELECT id FROM campaigns WHERE app = ?1)",
    "DELETE FROM reasons WHERE campaign IN (SELECT id FROM campaigns WHERE app = ?1)",
    "DELETE FROM ledgers WHERE campaign IN (SELECT id FROM campaigns WHERE app = ?1)",
    "DELETE FROM messages WHERE id IN (SELECT id FROM campaigns WHERE app = ?1)",
    "DELETE FROM group_users WHERE grp IN (SELECT no FROM groups WHERE app = ?1)",
    "DELETE FROM group_devices WHERE grp IN (SELECT no FROM groups WHERE app = ?1)",
    "DELETE FROM user_devices WHERE user IN (SELECT no FROM users WHERE app = ?1)",
    "DELETE FROM subscriptions WHERE topic IN (SELECT no FROM topics WHERE app = ?1)",
    "DELETE FROM occurrences WHERE schedule IN (SELECT id FROM schedules WHERE app = ?1)",
];

const OF_APP: &[&str] = &[
    "DELETE FROM campaigns WHERE app = ?1",
    "DELETE FROM groups WHERE app = ?1",
    "DELETE FROM users WHERE app = ?1",
    "DELETE FROM topics WHERE app = ?1",
    "DELETE FROM schedules WHERE app = ?1",
    "DELETE FROM device_tags WHERE app = ?1",
    "DELETE FROM replies WHERE app = ?1",
    "DELETE FROM credentials WHERE app = ?1",
    "DELETE FROM api_keys WHERE app = ?1",
    "DELETE FROM fleets WHERE app = ?1",
];

fn remove_fleet(connection: &Connection, fleet: Fleet) -> Done<()> {
    let (first, last) = (fleet.bound(DeviceId::from_raw(0)), fleet.bound(DeviceId::from_raw(u64::MAX)));
    let sql = "SELECT key, token FROM devices WHERE key BETWEEN ?1 AND ?2";
    let read = |row: &rusqlite::Row<'_>| {
        Ok((tokens::hash(fleet.app, fleet.provider, &text(row, 1, PushToken::new)?), row.get::<_, i64>(0)?))
    };
    let mut notes: Vec<(i64, i64)> = all(connection, sql, [first, last], read)?;
    notes.sort_unstable();
    notes.iter().try_for_each(|(hash, key)| tokens::forget(connection, *hash, *key))?;
    run(connection, "DELETE FROM devices WHERE key BETWEEN ?1 AND ?2", [first, last])?;
    run(connection, "DELETE FROM device_topics WHERE key BETWEEN ?1 AND ?2", [first, last]).map(drop)
}

/// Keeps the largest of the ids that go, so that none is ever given again.
fn remember_ids(connection: &Connection, app: AppId) -> Done<()> {
    let sql = "SELECT max(?1, coalesce((SELECT max(id) FROM api_keys WHERE app = ?1), 0),
        coalesce((SELECT max(id) FROM campaigns WHERE app = ?1), 0),
        coalesce((SELECT max(id) FROM schedules WHERE app = ?1), 0))";
    let last = one(connection, sql, params![int(app.raw())], |row| number(row, 0))?;
    sequences::advance(connection, "id", last.unwrap_or(0))
}
