//! Resolution of targets to devices.

use stentor_core::id::{AppId, DeviceId};
use stentor_core::limits::TARGET_DEVICES_MAX_COUNT;
use stentor_core::name::ExternalId;
use stentor_core::target::Target;

use super::{app_providers, groups, owners, topics};
use crate::sql::{Connection, Done, all, exists, limit, missing};

/// Fails if a target names something that does not exist in the app.
pub(crate) fn check_target(connection: &Connection, app: AppId, target: &Target) -> Done<()> {
    let known = |id: &DeviceId| app_providers::require(connection, app, *id).map(drop);
    match target {
        Target::Device(id) => known(id),
        Target::Devices(ids) => ids.iter().try_for_each(known),
        Target::Group(name) => groups::find(connection, app, name).map(drop),
        Target::Topic(name) => topics::find(connection, app, name)?.map(drop).ok_or(missing("topic")),
        Target::Token(_) | Target::User(_) | Target::Condition(_) | Target::Everyone => Ok(()),
    }
}

/// Finds the keys of devices that a target names one by one; devices that are gone are left out.
pub(crate) fn named(connection: &Connection, app: AppId, target: &Target) -> Done<Vec<i64>> {
    let ids: &[DeviceId] = match target {
        Target::Device(id) => std::slice::from_ref(id),
        Target::Devices(ids) => ids,
        Target::User(user) => return of_user(connection, app, user),
        _ => &[],
    };
    let mut keys = Vec::with_capacity(ids.len());
    for id in ids {
        keys.extend(app_providers::locate(connection, app, *id)?.map(|(_, key)| key));
    }
    Ok(keys)
}

/// Returns true if a user has so many devices that they are found step by step, like a wide audience.
pub(crate) fn has_many(connection: &Connection, app: AppId, target: &Target) -> Done<bool> {
    let Target::User(user) = target else { return Ok(false) };
    let Some((no, _)) = owners::find(connection, app, user)? else { return Ok(false) };
    let sql = "SELECT 1 FROM user_devices WHERE owner = ?1 LIMIT 1 OFFSET ?2";
    exists(connection, sql, [no, limit(TARGET_DEVICES_MAX_COUNT)])
}

/// Lists the keys of a user's devices.
pub(crate) fn of_user(connection: &Connection, app: AppId, user: &ExternalId) -> Done<Vec<i64>> {
    let Some((no, _)) = owners::find(connection, app, user)? else { return Ok(Vec::new()) };
    let join = connection.dialect().join_in_order;
    let sql = format!(
        "SELECT u.key FROM user_devices u {join} devices d ON d.key = u.key
        WHERE u.owner = ?1 AND d.listed AND d.retired_at IS NULL ORDER BY u.key"
    );
    all(connection, &sql, [no], |row| row.get(0))
}
