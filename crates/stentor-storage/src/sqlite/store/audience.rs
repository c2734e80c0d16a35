//! Who is meant by a target.

use rusqlite::{Connection, Params, params};
use stentor_core::chunk::TokenList;
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::limits::CHUNK_MAX_DEVICES;
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

/// Who was found, ascending, and perhaps their tokens, read along the way.
#[derive(Default)]
pub(super) struct Found {
    pub(super) devices: Vec<DeviceId>,
    /// One list for each chunk; none where tokens do not lie on the way.
    pub(super) tokens: Vec<TokenList>,
    chunk_max_devices: usize,
}

impl Found {
    /// Starts empty; tokens are read along for chunks of this size.
    pub(super) fn along(chunk_max_devices: usize) -> Self {
        Self { chunk_max_devices: chunk_max_devices.clamp(1, CHUNK_MAX_DEVICES), ..Self::default() }
    }

    /// Adds a device; one whose token cannot be read counts, and is found to be gone when its chunk is leased.
    fn push(&mut self, device: DeviceId, token: Option<&str>) {
        let size = self.chunk_max_devices;
        if size > 0 {
            if self.devices.len().is_multiple_of(size) {
                let next = self.tokens.last().map(TokenList::sized_like);
                self.tokens.push(next.unwrap_or_else(|| TokenList::with_capacity(size)));
            }
            self.tokens.last_mut().into_iter().zip(token).for_each(|(list, token)| list.push(token));
        }
        self.devices.push(device);
    }
}

/// Finds the listed, unretired devices of a wide target in a stretch, ascending; fewer than asked for means no more.
pub(super) fn wide(
    connection: &Connection,
    target: &Target,
    stretch: Stretch,
    mut found: Found,
) -> Done<Found> {
    match target {
        Target::Everyone => everyone(connection, stretch, &mut found)?,
        Target::Topic(name) => {
            if let Some(topic) = topics::find(connection, stretch.fleet.app, name)? {
                subscribed(connection, topic, stretch, &mut found)?;
            }
        }
        Target::Group(name) => match groups::find(connection, stretch.fleet.app, name) {
            Ok(group) => found.devices = members(connection, group, stretch)?,
            Err(Fault::Store(StoreError::NotFound(_))) => {}
            Err(other) => return Err(other),
        },
        Target::Condition(condition) => found.devices = condition::scan(connection, condition, stretch)?,
        Target::Device(_) | Target::Devices(_) | Target::Token(_) | Target::User(_) => {}
    }
    Ok(found)
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

const OF_TOPIC: &str = "SELECT s.key, d.token FROM subscriptions s CROSS JOIN devices d ON d.key = s.key
    WHERE s.topic = ?1 AND s.key > ?2 AND s.key <= ?3 AND d.listed = 1 AND d.retired_at IS NULL ORDER BY s.key LIMIT ?4";

/// Both halves come in order of key and are merged: a step reads its own stretch of each and stops.
const OF_GROUP: &str = "SELECT m.key FROM group_devices m CROSS JOIN devices d ON d.key = m.key
    WHERE m.grp = ?1 AND m.key > ?2 AND m.key <= ?3 AND d.listed = 1 AND d.retired_at IS NULL
    UNION SELECT m.key FROM group_user_devices m CROSS JOIN devices d ON d.key = m.key
    WHERE m.grp = ?1 AND m.key > ?2 AND m.key <= ?3 AND d.listed = 1 AND d.retired_at IS NULL
    ORDER BY 1 LIMIT ?4";

fn everyone(connection: &Connection, stretch: Stretch, found: &mut Found) -> Done<()> {
    let sql =
        "SELECT key, token FROM devices WHERE key > ?1 AND key <= ?2 AND listed = 1 AND retired_at IS NULL
        ORDER BY key LIMIT ?3";
    let (after, last, max) = stretch.bounds();
    gather(connection, sql, params![after, last, max], found)
}

fn subscribed(connection: &Connection, topic: i64, stretch: Stretch, found: &mut Found) -> Done<()> {
    let (after, last, max) = stretch.bounds();
    gather(connection, OF_TOPIC, params![topic, after, last, max], found)
}

fn members(connection: &Connection, group: i64, stretch: Stretch) -> Done<Vec<DeviceId>> {
    let (after, last, max) = stretch.bounds();
    all(connection, OF_GROUP, params![group, after, last, max], |row| Ok(device_of(row.get(0)?)))
}

fn gather(connection: &Connection, sql: &str, params: impl Params, found: &mut Found) -> Done<()> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    while let Some(row) = rows.next()? {
        found.push(device_of(row.get(0)?), row.get_ref(1)?.as_str().ok());
    }
    Ok(())
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
            let found = wide(connection, target, stretch, Found::default())?.devices;
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
