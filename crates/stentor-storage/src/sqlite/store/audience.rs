//! Who is meant by a target.

use rusqlite::{Connection, params};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::ports::store::AudienceCount;
use stentor_core::target::Target;

use super::fleets::{self, Fleet, device_of, fleet_of};
use super::{accept, condition, devices, groups, start, tokens, topics};
use crate::sqlite::fault::{Done, Fault};
use crate::sqlite::query::{all, exists, limit};

use stentor_core::ports::store::StoreError;

/// Devices read at once when an audience is only counted.
const COUNTED_AT_ONCE_MAX_COUNT: usize = 10_000;

/// A stretch of a fleet: after one device, up to another, at most so many.
#[derive(Clone, Copy)]
pub(super) struct Stretch {
    pub(super) fleet: Fleet,
    pub(super) after: DeviceId,
    pub(super) as_of: DeviceId,
    pub(super) max: usize,
}

impl Stretch {
    /// Gives the key after which it begins, the last key, and the most rows.
    pub(super) fn bounds(self) -> (i64, i64, i64) {
        (self.fleet.bound(self.after), self.fleet.bound(self.as_of), limit(self.max))
    }
}

/// Finds the listed, unretired devices of a wide target in a stretch, ascending; fewer than asked for means no more.
pub(super) fn wide(connection: &Connection, target: &Target, stretch: Stretch) -> Done<Vec<DeviceId>> {
    match target {
        Target::Everyone => everyone(connection, stretch),
        Target::Topic(name) => match topics::find(connection, stretch.fleet.app, name)? {
            Some(topic) => listed_in(connection, OF_TOPIC, topic, stretch),
            None => Ok(Vec::new()),
        },
        Target::Group(name) => match groups::find(connection, stretch.fleet.app, name) {
            Ok(group) => listed_in(connection, OF_GROUP, group, stretch),
            Err(Fault::Store(StoreError::NotFound(_))) => Ok(Vec::new()),
            Err(other) => Err(other),
        },
        Target::Condition(condition) => condition::scan(connection, condition, stretch),
        Target::Device(_) | Target::Devices(_) | Target::Token(_) | Target::User(_) => Ok(Vec::new()),
    }
}

/// Counts whom a target would reach now, by provider.
pub(super) fn count(connection: &Connection, app: AppId, target: &Target) -> Done<Vec<AudienceCount>> {
    fleets::check_app(connection, app)?;
    accept::check_target(connection, app, target)?;
    match target {
        Target::Everyone => devices::counts(connection, app),
        Target::Token(token) => {
            let fleet = fleets::find(connection, app, token.provider)?;
            let holder = fleet.map(|fleet| tokens::holder(connection, fleet, &token.token)).transpose()?;
            let reaches = holder.flatten().map_or(Ok(true), |key| is_unretired(connection, key))?;
            Ok(if reaches { vec![(token.provider, 1)] } else { Vec::new() })
        }
        direct if direct.is_direct() => count_named(connection, app, direct),
        wide => count_wide(connection, app, wide),
    }
}

const OF_TOPIC: &str = "SELECT s.key FROM subscriptions s CROSS JOIN devices d ON d.key = s.key
    WHERE s.topic = ?1 AND s.key > ?2 AND s.key <= ?3 AND d.listed = 1 AND d.retired_at IS NULL ORDER BY s.key LIMIT ?4";

/// Both halves come in order of key and are merged: a step reads its own stretch of each and stops.
const OF_GROUP: &str = "SELECT m.key FROM group_devices m CROSS JOIN devices d ON d.key = m.key
    WHERE m.grp = ?1 AND m.key > ?2 AND m.key <= ?3 AND d.listed = 1 AND d.retired_at IS NULL
    UNION SELECT m.key FROM group_user_devices m CROSS JOIN devices d ON d.key = m.key
    WHERE m.grp = ?1 AND m.key > ?2 AND m.key <= ?3 AND d.listed = 1 AND d.retired_at IS NULL
    ORDER BY 1 LIMIT ?4";

fn everyone(connection: &Connection, stretch: Stretch) -> Done<Vec<DeviceId>> {
    let sql = "SELECT key FROM devices WHERE key > ?1 AND key <= ?2 AND listed = 1 AND retired_at IS NULL ORDER BY key LIMIT ?3";
    let (after, last, max) = stretch.bounds();
    all(connection, sql, [after, last, max], |row| Ok(device_of(row.get(0)?)))
}

fn listed_in(connection: &Connection, sql: &str, list: i64, stretch: Stretch) -> Done<Vec<DeviceId>> {
    let (after, last, max) = stretch.bounds();
    all(connection, sql, params![list, after, last, max], |row| Ok(device_of(row.get(0)?)))
}

fn count_named(connection: &Connection, app: AppId, target: &Target) -> Done<Vec<AudienceCount>> {
    let keys = start::named(connection, app, target)?;
    let mut counts = Vec::new();
    for fleet in fleets::of_app(connection, app)? {
        let mut count = 0;
        for key in keys.iter().filter(|key| fleet_of(**key) == fleet.no) {
            count += u64::from(is_unretired(connection, *key)?);
        }
        push(&mut counts, fleet.provider, count);
    }
    Ok(counts)
}

fn count_wide(connection: &Connection, app: AppId, target: &Target) -> Done<Vec<AudienceCount>> {
    let mut counts = Vec::new();
    for fleet in fleets::of_app(connection, app)? {
        let (mut count, mut after) = (0, DeviceId::from_raw(0));
        loop {
            let as_of = DeviceId::from_raw(u64::MAX);
            let stretch = Stretch { fleet, after, as_of, max: COUNTED_AT_ONCE_MAX_COUNT };
            let found = wide(connection, target, stretch)?;
            count += found.len() as u64;
            match found.last() {
                Some(last) if found.len() == COUNTED_AT_ONCE_MAX_COUNT => after = *last,
                _ => break,
            }
        }
        push(&mut counts, fleet.provider, count);
    }
    Ok(counts)
}

fn push(counts: &mut Vec<AudienceCount>, provider: ProviderKind, count: u64) {
    if count > 0 {
        counts.push((provider, count));
    }
}

fn is_unretired(connection: &Connection, key: i64) -> Done<bool> {
    exists(connection, "SELECT 1 FROM devices WHERE key = ?1 AND retired_at IS NULL", [key])
}

#[cfg(test)]
mod tests;
