//! Users.

use async_trait::async_trait;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::name::ExternalId;
use stentor_core::ports::store::{Precondition, StoreError, UserStore};
use stentor_core::time::Timestamp;
use stentor_core::user::User;

use super::app_providers::{self, device_of};
use super::{members, owners};
use crate::sql::{
    Connection, Done, Portion, RemovedKind, Row, SqlEngine, SqlStore, all, int, limit, missing, params,
    readable, run, text, time, unless_missing,
};

/// The largest number of devices shown with a user.
const DEVICES_SHOWN_MAX_COUNT: usize = 1_000;

#[async_trait]
impl<E: SqlEngine> UserStore for SqlStore<E> {
    async fn put_user(
        &self,
        app: AppId,
        user: &ExternalId,
        now: Timestamp,
        precondition: &Precondition<User>,
    ) -> Result<User, StoreError> {
        let (user, precondition) = (user.clone(), precondition.clone());
        self.write_registry(move |connection| {
            app_providers::check_app(connection, app)?;
            precondition.check(|| unless_missing(show(connection, app, &user)))?;
            owners::ensure(connection, app, &user, now)?;
            show(connection, app, &user)
        })
        .await
    }

    async fn user(&self, app: AppId, user: &ExternalId) -> Result<User, StoreError> {
        let user = user.clone();
        self.read(move |connection| show(connection, app, &user)).await
    }

    async fn users(
        &self,
        app: AppId,
        after: Option<&ExternalId>,
        count: usize,
    ) -> Result<Vec<User>, StoreError> {
        let after = after.map_or(String::new(), |name| name.as_str().to_owned());
        self.read(move |connection| {
            let sql = "SELECT external_id, created_at FROM users
                WHERE app = ?1 AND external_id > ?2 ORDER BY external_id";
            let read = |row: &Row<'_>| {
                let external_id = text(row, 0, ExternalId::new)?;
                Ok(User { app, external_id, created_at: time(row, 1)?, devices: Vec::new() })
            };
            Ok(readable(connection, "users", (sql, params![int(app.raw()), after.as_str()]), count, read)?.0)
        })
        .await
    }
}

fn show(connection: &Connection, app: AppId, user: &ExternalId) -> Done<User> {
    let (no, created_at) = owners::find(connection, app, user)?.ok_or(missing("user"))?;
    let sql = "SELECT key FROM user_devices WHERE owner = ?1 ORDER BY key LIMIT ?2";
    let key = |row: &Row<'_>| Ok(device_of(row.get(0)?));
    let mut devices: Vec<DeviceId> = all(connection, sql, params![no, limit(DEVICES_SHOWN_MAX_COUNT)], key)?;
    // Keys begin with the fleet, and ids do not.
    devices.sort_unstable();
    Ok(User { app, external_id: user.clone(), created_at, devices })
}

/// Removes a user of whom the precondition holds.
pub(crate) fn remove(
    connection: &Connection,
    app: AppId,
    user: &ExternalId,
    precondition: &Precondition<User>,
) -> Done<()> {
    precondition.check(|| show(connection, app, user).map(Some))?;
    let (no, _) = owners::find(connection, app, user)?.ok_or(missing("user"))?;
    members::remove_user(connection, no)?;
    run(connection, "DELETE FROM users WHERE no = ?1", [no])?;
    connection.begin_removal(RemovedKind::Person, no, &Portion::begin(connection))
}
