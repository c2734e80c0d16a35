//! Who is meant by a target.

use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::ports::store::{AudienceCount, StoreError};
use stentor_core::target::Target;

use super::app_providers::{self, Fleet, device_of, fleet_of};
use super::stretch::FleetStretch;
use super::{condition, devices, groups, owners, targets, tokens, topics};
use crate::postgres::engine::{Connection, params};
use crate::postgres::fault::{Done, PostgresError};
use crate::postgres::query::{all, exists, keys, limit};

/// Devices that one look counts.
const COUNTED_MAX_COUNT: usize = 32_768;

/// Adds the listed, unretired devices of a wide target in a stretch, ascending; returns the device after which to look on, none
/// when the stretch is over.
pub(super) fn wide(
    connection: &Connection,
    target: &Target,
    stretch: FleetStretch,
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
            Err(PostgresError::Store(StoreError::NotFound(_))) => Ok(None),
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

/// Returns whether a target's audience is walked through to be counted.
pub(super) const fn is_walked(target: &Target) -> bool {
    matches!(target, Target::Topic(_) | Target::Group(_) | Target::Condition(_) | Target::User(_))
}

/// Checks app and target; returns the fleets through which to walk.
pub(super) fn begin_count(connection: &Connection, app: AppId, target: &Target) -> Done<Vec<Fleet>> {
    app_providers::check_app(connection, app)?;
    targets::check_target(connection, app, target)?;
    app_providers::of_app(connection, app)
}

/// Counts the next ones of an audience in a fleet; returns the device after which to count on, none when it is over.
pub(super) fn count_some(
    connection: &Connection,
    target: &Target,
    (fleet, after): (Fleet, DeviceId),
) -> Done<(u64, Option<DeviceId>)> {
    let stretch = FleetStretch { fleet, after, as_of: DeviceId::from_raw(u64::MAX), max: COUNTED_MAX_COUNT };
    let mut found = Vec::new();
    let next = wide(connection, target, stretch, &mut found)?;
    Ok((found.len() as u64, next))
}

/// Counts whom a target that is not walked through would reach now, by provider.
pub(super) fn count(connection: &Connection, app: AppId, target: &Target) -> Done<Vec<AudienceCount>> {
    app_providers::check_app(connection, app)?;
    targets::check_target(connection, app, target)?;
    match target {
        Target::Everyone => devices::counts(connection, app),
        Target::Token(token) => {
            let fleet = app_providers::find(connection, app, token.provider)?;
            let holder = fleet.map(|fleet| tokens::holder(connection, fleet, &token.token)).transpose()?;
            // A token that nobody holds is reached too: the message makes a device of it.
            let reaches = holder.flatten().map_or(Ok(true), |key| is_unretired(connection, key))?;
            Ok(if reaches { vec![(token.provider, 1)] } else { Vec::new() })
        }
        named => count_named(connection, app, named),
    }
}

// Each is asked with a list's number, the key after which it begins, the last key, and how many at most.

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
    stretch: FleetStretch,
    found: &mut Vec<DeviceId>,
) -> Done<Option<DeviceId>> {
    let (after, last) = stretch.bounds();
    let keys = keys(connection, sql, [list, after, last, limit(stretch.max)])?;
    found.extend(keys.iter().map(|key| device_of(*key)));
    Ok(keys.last().filter(|_| keys.len() == stretch.max).map(|key| device_of(*key)))
}

fn count_named(connection: &Connection, app: AppId, target: &Target) -> Done<Vec<AudienceCount>> {
    let keys = targets::named(connection, app, target)?;
    let sql = "SELECT key FROM devices WHERE key = ANY($1) AND retired_at IS NULL";
    let keys: Vec<i64> = all(connection, sql, params![keys], |row| row.get(0))?;
    let mut counts = Vec::new();
    for fleet in app_providers::of_app(connection, app)? {
        let count = keys.iter().filter(|key| fleet_of(**key) == fleet.no).count();
        push(&mut counts, fleet.provider, count as u64);
    }
    Ok(counts)
}

/// Adds a count, unless it is of nobody.
pub(super) fn push(counts: &mut Vec<AudienceCount>, provider: ProviderKind, count: u64) {
    if count > 0 {
        counts.push((provider, count));
    }
}

fn is_unretired(connection: &Connection, key: i64) -> Done<bool> {
    exists(connection, "SELECT 1 FROM devices WHERE key = $1 AND retired_at IS NULL", [key])
}
