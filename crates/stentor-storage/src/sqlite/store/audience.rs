//! Resolution of targets to the keys of devices.

use rusqlite::Connection;
use stentor_core::chunk::TokenList;
use stentor_core::id::DeviceId;
use stentor_core::limits::CHUNK_MAX_DEVICES;
use stentor_core::target::Target;

use super::app_providers::{AppProvider, device_of};
use super::condition::IS_ACTIVE;
use super::stretch::{Stretch, WALKED_MAX_COUNT};
use super::{condition, groups, leftovers, owners, topics};

use std::ops::ControlFlow;
use stentor_core::ports::store::StoreError;

use crate::sql::{Done, Params, Row, Sql as _, SqlError, exists, limit, params};

/// The devices found, ascending, and their tokens if these were read along the way.
#[derive(Default)]
pub(super) struct AudiencePart {
    pub(super) devices: Vec<DeviceId>,
    /// One list for each chunk; none if tokens are not on the path of the read.
    pub(super) tokens: Vec<TokenList>,
    chunk_max_devices: usize,
}

impl AudiencePart {
    /// Starts empty; tokens are read along for chunks of this size.
    pub(super) fn along(chunk_max_devices: usize) -> Self {
        Self { chunk_max_devices: chunk_max_devices.clamp(1, CHUNK_MAX_DEVICES), ..Self::default() }
    }

    /// Adds the device and token of a row if its second column marks it as listed and not retired; returns true if it was added.
    fn push_active(&mut self, key: i64, row: &Row<'_>) -> Done<bool> {
        let is_active = row.get(1)?;
        if is_active {
            self.push(device_of(key), row.maybe_str(2).ok().flatten());
        }
        Ok(is_active)
    }

    /// Adds a device. A device with an unreadable token counts, and is found to be gone when its chunk is leased.
    fn push(&mut self, device: DeviceId, token: Option<&str>) {
        let size = self.chunk_max_devices;
        if size > 0 {
            // A list begins with the first device of a chunk, so that list i belongs to chunk i.
            if self.devices.len().is_multiple_of(size) {
                let next = self.tokens.last().map(TokenList::sized_like);
                self.tokens.push(next.unwrap_or_else(|| TokenList::with_capacity(size)));
            }
            self.tokens.last_mut().into_iter().zip(token).for_each(|(list, token)| list.push(token));
        }
        self.devices.push(device);
    }
}

/// Adds the listed, unretired devices of a wide target in a stretch, ascending; returns the device after which to look on, none
/// when the stretch is over. A look ends when enough were found, or enough rows were walked over.
pub(super) fn wide(
    connection: &Connection,
    target: &Target,
    stretch: Stretch,
    found: &mut AudiencePart,
) -> Done<Option<DeviceId>> {
    let app = stretch.fleet.app;
    match target {
        Target::Everyone => everyone(connection, stretch, found),
        Target::Topic(name) => match topics::find(connection, app, name)? {
            Some(topic) => gather(connection, OF_TOPIC, topic, stretch, found),
            None => Ok(None),
        },
        Target::Group(name) => match groups::find(connection, app, name) {
            Ok(group) => members(connection, group, stretch, found),
            // A group removed since the message was accepted has no members.
            Err(SqlError::Store(StoreError::NotFound(_))) => Ok(None),
            Err(other) => Err(other),
        },
        Target::User(user) => match owners::find(connection, app, user)? {
            Some((user, _)) => gather(connection, OF_USER, user, stretch, found),
            None => Ok(None),
        },
        Target::Condition(condition) => condition::scan(connection, condition, stretch, &mut found.devices),
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
    let stretch = Stretch { fleet, after, as_of: DeviceId::from_raw(u64::MAX), max: WALKED_MAX_COUNT };
    let mut found = AudiencePart::default();
    let next = wide(connection, target, stretch, &mut found)?;
    Ok((found.devices.len() as u64, next))
}

const OF_TOPIC: &str =
    "SELECT s.key, d.listed AND d.retired_at IS NULL, d.token FROM subscriptions s CROSS JOIN devices d ON d.key = s.key
    WHERE s.topic = ?1 AND s.key > ?2 AND s.key <= ?3 ORDER BY s.key LIMIT ?4";

const OF_USER: &str =
    "SELECT u.key, d.listed AND d.retired_at IS NULL, d.token FROM user_devices u CROSS JOIN devices d ON d.key = u.key
    WHERE u.owner = ?1 AND u.key > ?2 AND u.key <= ?3 ORDER BY u.key LIMIT ?4";

/// Both halves come in order of key and are merged: a step reads its own stretch of each and stops.
const OF_GROUP: &str = "SELECT m.key FROM group_devices m WHERE m.grp = ?1 AND m.key > ?2 AND m.key <= ?3
    UNION SELECT m.key FROM group_user_devices m WHERE m.grp = ?1 AND m.key > ?2 AND m.key <= ?3
    ORDER BY 1 LIMIT ?4";

/// The same query while devices of users that joined or left are still to be updated.
const OF_CHANGING_GROUP: &str =
    "SELECT m.key FROM group_devices m WHERE m.grp = ?1 AND m.key > ?2 AND m.key <= ?3
    UNION SELECT m.key FROM group_user_devices m WHERE m.grp = ?1 AND m.key > ?2 AND m.key <= ?3
        AND EXISTS (SELECT 1 FROM group_users g WHERE g.owner = m.owner AND g.grp = m.grp)
    ORDER BY 1 LIMIT ?4";

fn everyone(connection: &Connection, stretch: Stretch, found: &mut AudiencePart) -> Done<Option<DeviceId>> {
    let sql = "SELECT key, listed AND retired_at IS NULL, token FROM devices WHERE key > ?1 AND key <= ?2
        ORDER BY key LIMIT ?3";
    let (after, last) = stretch.bounds();
    let params = params![after, last, limit(WALKED_MAX_COUNT)];
    walk(connection, sql, params, stretch.max, |key, row| found.push_active(key, row))
}

/// Gathers devices with their tokens from a list that has a number.
fn gather(
    connection: &Connection,
    sql: &str,
    list: i64,
    stretch: Stretch,
    found: &mut AudiencePart,
) -> Done<Option<DeviceId>> {
    let (after, last) = stretch.bounds();
    let params = params![list, after, last, limit(WALKED_MAX_COUNT)];
    walk(connection, sql, params, stretch.max, |key, row| found.push_active(key, row))
}

fn members(
    connection: &Connection,
    group: i64,
    stretch: Stretch,
    found: &mut AudiencePart,
) -> Done<Option<DeviceId>> {
    let (after, last) = stretch.bounds();
    let params = params![group, after, last, limit(WALKED_MAX_COUNT)];
    let sql = if leftovers::is_following(connection, group)? { OF_CHANGING_GROUP } else { OF_GROUP };
    walk(connection, sql, params, stretch.max, |key, _| {
        let is_active = exists(connection, IS_ACTIVE, [key])?;
        if is_active {
            found.devices.push(device_of(key));
        }
        Ok(is_active)
    })
}

/// Reads rows of keys up to the limit; returns the last device if there may be more.
fn walk<'v>(
    connection: &Connection,
    sql: &str,
    params: impl Params<'v>,
    max: usize,
    mut take: impl FnMut(i64, &Row<'_>) -> Done<bool>,
) -> Done<Option<DeviceId>> {
    let (mut walked, mut taken, mut last) = (0, 0, None);
    connection.query(sql, params.values().as_ref(), &mut |row| {
        let key = row.get(0)?;
        walked += 1;
        taken += usize::from(take(key, row)?);
        if taken == max || walked == WALKED_MAX_COUNT {
            last = Some(device_of(key));
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(last)
}

#[cfg(test)]
mod tests;
