//! Resolution of targets to the keys of devices.

use stentor_core::id::DeviceId;
use stentor_core::ports::store::StoreError;
use stentor_core::target::Target;

use super::app_providers::{AppProvider, device_of};
use super::stretch::Stretch;
use super::{condition, groups, owners, topics};
use crate::postgres::engine::Connection;
use crate::postgres::query::keys;
use crate::sql::{Done, SqlError, limit};

/// Devices that one look counts.
const COUNTED_MAX_COUNT: usize = 32_768;

/// Adds the listed, unretired devices of a wide target in a stretch, ascending; returns the device after which to look on, none
/// when the stretch is over.
pub(super) fn wide(
    connection: &Connection,
    target: &Target,
    stretch: Stretch,
    found: &mut Vec<DeviceId>,
) -> Done<Option<DeviceId>> {
    let app = stretch.fleet.app;
    match target {
        Target::Everyone => gather(connection, EVERYONE, 0, stretch, found),
        Target::Topic(name) => match topics::find(connection, app, name)? {
            Some(topic) => gather(connection, OF_TOPIC, topic, stretch, found),
            None => Ok(None),
        },
        Target::Group(name) => match groups::find(connection, app, name) {
            Ok(group) => gather(connection, OF_GROUP, group, stretch, found),
            Err(SqlError::Store(StoreError::NotFound(_))) => Ok(None),
            Err(other) => Err(other),
        },
        Target::User(user) => match owners::find(connection, app, user)? {
            Some((user, _)) => gather(connection, OF_USER, user, stretch, found),
            None => Ok(None),
        },
        Target::Condition(condition) => condition::scan(connection, condition, stretch, found),
        Target::Device(_) | Target::Devices(_) | Target::Token(_) => Ok(None),
    }
}

/// Counts the next ones of an audience in a fleet; returns the device after which to count on, none when it is over.
pub(super) fn count_some(
    connection: &Connection,
    target: &Target,
    fleet: AppProvider,
    after: DeviceId,
) -> Done<(u64, Option<DeviceId>)> {
    let stretch = Stretch { fleet, after, as_of: DeviceId::from_raw(u64::MAX), max: COUNTED_MAX_COUNT };
    let mut found = Vec::new();
    let next = wide(connection, target, stretch, &mut found)?;
    Ok((found.len() as u64, next))
}

// The parameters of each: a list's number, the key after which it begins, the last key, and the largest count.

/// The list's number is not needed; it is named all the same.
const EVERYONE: &str = "SELECT key FROM devices WHERE $1::bigint = 0 AND key > $2 AND key <= $3
    AND listed AND retired_at IS NULL ORDER BY key LIMIT $4";

const OF_TOPIC: &str = "SELECT s.key FROM subscriptions s JOIN devices d ON d.key = s.key
    WHERE s.topic = $1 AND s.key > $2 AND s.key <= $3 AND d.listed AND d.retired_at IS NULL ORDER BY s.key LIMIT $4";

const OF_USER: &str = "SELECT u.key FROM user_devices u JOIN devices d ON d.key = u.key
    WHERE u.owner = $1 AND u.key > $2 AND u.key <= $3 AND d.listed AND d.retired_at IS NULL ORDER BY u.key LIMIT $4";

const OF_GROUP: &str = "SELECT m.key FROM (
        SELECT g.key FROM group_devices g WHERE g.grp = $1 AND g.key > $2 AND g.key <= $3
        UNION SELECT u.key FROM group_users g JOIN user_devices u ON u.owner = g.owner
            WHERE g.grp = $1 AND u.key > $2 AND u.key <= $3) m JOIN devices d ON d.key = m.key
    WHERE d.listed AND d.retired_at IS NULL ORDER BY m.key LIMIT $4";

fn gather(
    connection: &Connection,
    sql: &str,
    list: i64,
    stretch: Stretch,
    found: &mut Vec<DeviceId>,
) -> Done<Option<DeviceId>> {
    let (after, last) = stretch.bounds();
    let keys = keys(connection, sql, [list, after, last, limit(stretch.max)])?;
    found.extend(keys.iter().map(|key| device_of(*key)));
    Ok(keys.last().filter(|_| keys.len() == stretch.max).map(|key| device_of(*key)))
}
