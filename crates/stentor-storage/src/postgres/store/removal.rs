//! Removing a device, or an app.

use crate::postgres::engine::{Connection, Row};
use stentor_core::id::AppId;

use super::app_providers::{self, Fleet};
use super::leftovers::{self, PendingRemoval, PendingRemovalKind};
use super::{device_traces, members, sequences, tags, topics};
use crate::postgres::fault::{Done, found, missing};
use crate::postgres::portion::WorkPortion;
use crate::postgres::query::{one, run};
use crate::postgres::row::{int, number};

/// What a device leaves behind in other tables.
struct DeviceTraces {
    user: Option<i64>,
    tags: Option<String>,
    active: bool,
}

/// Removes one device with its subscriptions and memberships; its deliveries stay in the ledger.
pub(super) fn device(connection: &Connection, fleet: Fleet, key: i64) -> Done<()> {
    let sql = "SELECT owner, tags, listed AND retired_at IS NULL FROM devices WHERE key = $1";
    let read = |row: &Row<'_>| {
        let (user, tags) = (row.get(0)?, row.get(1)?);
        Ok(DeviceTraces { user, tags, active: row.get(2)? })
    };
    let traces = one(connection, sql, [key], read)?.ok_or(missing("device"))?;
    if let Some(user) = traces.user {
        run(connection, "DELETE FROM user_devices WHERE owner = $1 AND key = $2", [user, key])?;
    }
    tags::change_tags(connection, fleet.app, key, traces.tags.as_deref(), None)?;
    topics::drop_device(connection, key)?;
    members::remove_device(connection, key)?;
    device_traces::forget(connection, fleet.provider, &[key])?;
    run(connection, "DELETE FROM devices WHERE key = $1", [key])?;
    app_providers::count_active(connection, fleet.no, -i64::from(traces.active))
}

/// Removes an app: it is gone for everybody with this transaction, what is much of it goes later.
pub(super) fn app(connection: &Connection, app: AppId) -> Done<()> {
    let id = int(app.raw());
    found(run(connection, "DELETE FROM apps WHERE id = $1", [id])?, "app")?;
    // Before any of the rows goes that have them.
    remember_ids(connection, app)?;
    // Secrets go at once, whatever is left for later.
    run(connection, "DELETE FROM credentials WHERE app = $1", [id])?;
    run(connection, "DELETE FROM upstream_webhooks WHERE app = $1", [id])?;
    run(connection, "DELETE FROM services WHERE app = $1", [id])?;
    PendingRemoval::of(PendingRemovalKind::App, id).note(connection)?;
    leftovers::go_on(connection, &WorkPortion::begin(connection)).map(drop)
}

/// Keeps the largest of the ids that go, so that none is ever given again.
fn remember_ids(connection: &Connection, app: AppId) -> Done<()> {
    let sql = "SELECT greatest($1::bigint, coalesce((SELECT max(id) FROM api_keys WHERE app = $1), 0),
        coalesce((SELECT max(id) FROM accounts WHERE app = $1), 0),
        coalesce((SELECT max(id) FROM campaigns WHERE app = $1), 0),
        coalesce((SELECT max(id) FROM schedules WHERE app = $1), 0))";
    let last = one(connection, sql, [int(app.raw())], |row| number(row, 0))?;
    sequences::advance(connection, "id", last.unwrap_or(0))
}
