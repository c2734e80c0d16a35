//! Removing a device, or an app.

use stentor_core::device::PushToken;
use stentor_core::id::AppId;

use super::app_providers::{self, AppProvider};
use super::{device_traces, members, sequences, tags, topics};
use crate::sql::{
    Connection, Done, Portion, RemovedKind, Row, found, int, missing, number, one, params, run, text,
};

/// The data of a device in other tables.
struct Traces {
    /// `None` if it cannot be read: its hash stays behind, and no lookup finds it.
    token: Option<PushToken>,
    user: Option<i64>,
    tags: Option<String>,
    active: bool,
}

/// Removes one device with its subscriptions and memberships; its deliveries stay in the ledger.
pub(crate) fn device(connection: &Connection, fleet: AppProvider, key: i64) -> Done<()> {
    let sql = "SELECT token, owner, tags, listed AND retired_at IS NULL FROM devices WHERE key = ?1";
    let read = |row: &Row<'_>| {
        let token = text(row, 0, PushToken::new).ok();
        // Unreadable columns leave rows behind that no query reads; the device is removed all the same.
        let (user, tags) = (row.get(1).ok().flatten(), row.get(2).ok().flatten());
        Ok(Traces { token, user, tags, active: row.get(3)? })
    };
    let traces = one(connection, sql, [key], read)?.ok_or(missing("device"))?;
    if let Some(token) = &traces.token {
        connection.forget_token(fleet, token, key)?;
    }
    if let Some(user) = traces.user {
        run(connection, "DELETE FROM user_devices WHERE owner = ?1 AND key = ?2", [user, key])?;
    }
    tags::change_tags(connection, fleet.app, key, traces.tags.as_deref(), None)?;
    topics::drop_device(connection, key)?;
    members::remove_device(connection, key)?;
    device_traces::forget(connection, fleet.provider, &[key])?;
    run(connection, "DELETE FROM devices WHERE key = ?1", [key])?;
    app_providers::count_active(connection, fleet.no, -i64::from(traces.active))
}

/// Removes an app. It is gone for all callers with this transaction; its many rows are deleted later.
pub(crate) fn app(connection: &Connection, app: AppId) -> Done<()> {
    let id = int(app.raw());
    found(run(connection, "DELETE FROM apps WHERE id = ?1", [id])?, "app")?;
    // Before any of the rows goes that have them.
    remember_ids(connection, app)?;
    // Secrets are deleted at once, even if other rows are left for later.
    run(connection, "DELETE FROM credentials WHERE app = ?1", [id])?;
    run(connection, "DELETE FROM upstream_webhooks WHERE app = ?1", [id])?;
    run(connection, "DELETE FROM services WHERE app = ?1", [id])?;
    run(connection, "DELETE FROM proposals WHERE app = ?1", [id])?;
    connection.note_fleets(id)?;
    connection.note_removal(RemovedKind::App, id)?;
    // A small app is removed completely by this transaction.
    connection.go_on_removing(&Portion::begin(connection)).map(drop)
}

/// Stores the largest of the deleted ids, so that none is ever issued again.
fn remember_ids(connection: &Connection, app: AppId) -> Done<()> {
    let greatest = connection.dialect().greatest;
    let sql = format!(
        "SELECT {greatest}(CAST(?1 AS BIGINT), coalesce((SELECT max(id) FROM api_keys WHERE app = ?1), 0),
        coalesce((SELECT max(id) FROM accounts WHERE app = ?1), 0),
        coalesce((SELECT max(id) FROM campaigns WHERE app = ?1), 0),
        coalesce((SELECT max(id) FROM schedules WHERE app = ?1), 0),
        coalesce((SELECT max(id) FROM proposals WHERE app = ?1), 0))"
    );
    let last = one(connection, &sql, params![int(app.raw())], |row| number(row, 0))?;
    sequences::advance(connection, "id", last.unwrap_or(0))
}
