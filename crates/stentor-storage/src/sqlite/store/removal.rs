//! Removing a device, or an app.

use rusqlite::{Connection, params};
use stentor_core::device::PushToken;
use stentor_core::id::AppId;

use super::app_providers::{self, AppProvider};
use super::leftovers::{self, Leftover, LeftoverKind};
use super::{device_traces, members, sequences, tags, tokens, topics};
use crate::sqlite::fault::{Done, found, missing};
use crate::sqlite::portion::Portion;
use crate::sqlite::query::{one, run};
use crate::sqlite::row::{int, number, text};

/// What a device leaves behind in other tables.
struct Traces {
    /// None where it cannot be read: its hash stays behind, and nobody is found by it.
    token: Option<PushToken>,
    user: Option<i64>,
    tags: Option<String>,
    active: bool,
}

/// Removes one device with its subscriptions and memberships; its deliveries stay in the ledger.
pub(super) fn device(connection: &Connection, fleet: AppProvider, key: i64) -> Done<()> {
    let sql = "SELECT token, user, tags, listed = 1 AND retired_at IS NULL FROM devices WHERE key = ?1";
    let read = |row: &rusqlite::Row<'_>| {
        let token = text(row, 0, PushToken::new).ok();
        // What cannot be read leaves rows behind that nobody asks for; the device goes all the same.
        let (user, tags) = (row.get(1).ok().flatten(), row.get(2).ok().flatten());
        Ok(Traces { token, user, tags, active: row.get(3)? })
    };
    let traces = one(connection, sql, [key], read)?.ok_or(missing("device"))?;
    if let Some(token) = &traces.token {
        tokens::forget(connection, tokens::hash(fleet.app, fleet.provider, token), key)?;
    }
    if let Some(user) = traces.user {
        run(connection, "DELETE FROM user_devices WHERE user = ?1 AND key = ?2", [user, key])?;
    }
    tags::change_tags(connection, fleet.app, key, traces.tags.as_deref(), None)?;
    topics::drop_device(connection, key)?;
    members::remove_device(connection, key)?;
    device_traces::forget(connection, fleet.provider, key)?;
    run(connection, "DELETE FROM devices WHERE key = ?1", [key])?;
    app_providers::count_active(connection, fleet.no, -i64::from(traces.active))
}

/// Removes an app: it is gone for everybody with this transaction, what is much of it goes later.
pub(super) fn app(connection: &Connection, app: AppId) -> Done<()> {
    let id = int(app.raw());
    found(run(connection, "DELETE FROM apps WHERE id = ?1", [id])?, "app")?;
    // Before any of the rows goes that have them.
    remember_ids(connection, app)?;
    // Secrets go at once, whatever is left for later.
    run(connection, "DELETE FROM credentials WHERE app = ?1", [id])?;
    run(connection, "DELETE FROM upstream_webhooks WHERE app = ?1", [id])?;
    run(connection, "DELETE FROM services WHERE app = ?1", [id])?;
    leftovers::leave_fleets(connection, id)?;
    Leftover::of(LeftoverKind::App, id).note(connection)?;
    // What is little goes with this transaction.
    leftovers::go_on(connection, &Portion::begin(connection)).map(drop)
}

/// Keeps the largest of the ids that go, so that none is ever given again.
fn remember_ids(connection: &Connection, app: AppId) -> Done<()> {
    let sql = "SELECT max(?1, coalesce((SELECT max(id) FROM api_keys WHERE app = ?1), 0),
        coalesce((SELECT max(id) FROM accounts WHERE app = ?1), 0),
        coalesce((SELECT max(id) FROM campaigns WHERE app = ?1), 0),
        coalesce((SELECT max(id) FROM schedules WHERE app = ?1), 0))";
    let last = one(connection, sql, params![int(app.raw())], |row| number(row, 0))?;
    sequences::advance(connection, "id", last.unwrap_or(0))
}
