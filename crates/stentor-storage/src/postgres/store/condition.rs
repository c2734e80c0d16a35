//! Search for the devices whose topics fulfil a condition: the subscriptions of the topics are read side by side, one page of each at a
//! time.
//!
//! A condition that a device without topics fulfils is evaluated along the devices, any other along the subscriptions alone.

use std::collections::BTreeSet;

use stentor_core::id::DeviceId;
use stentor_core::name::TopicName;
use stentor_core::topic::Condition;

use super::app_providers::device_of;
use super::stretch::{Stretch, WALKED_MAX_COUNT};
use super::topics;
use crate::postgres::engine::Connection;
use crate::postgres::query::keys;
use crate::sql::{Done, Params, limit, params};

const SUBSCRIBED: &str =
    "SELECT key FROM subscriptions WHERE topic = $1 AND key > $2 AND key <= $3 ORDER BY key LIMIT $4";
const DEVICES: &str = "SELECT key FROM devices WHERE key > $1 AND key <= $2 ORDER BY key LIMIT $3";
const ACTIVE: &str =
    "SELECT key FROM devices WHERE key = ANY($1) AND listed AND retired_at IS NULL ORDER BY key";

/// A page of an ascending list of keys.
struct Walk {
    keys: Vec<i64>,
    /// The last key up to which the page is the list.
    upto: i64,
}

impl Walk {
    fn read<'v>(connection: &Connection, sql: &str, params: impl Params<'v>, last: i64) -> Done<Self> {
        let keys = keys(connection, sql, params)?;
        let full = keys.last().filter(|_| keys.len() == WALKED_MAX_COUNT).copied();
        Ok(Self { upto: full.unwrap_or(last), keys })
    }

    fn has(&self, key: i64) -> bool {
        self.keys.binary_search(&key).is_ok()
    }
}

/// Finds listed, unretired devices of the stretch that fulfil the condition; returns the device after which to look on, none
/// when the stretch is over.
pub(super) fn scan(
    connection: &Connection,
    condition: &Condition,
    stretch: Stretch,
    found: &mut Vec<DeviceId>,
) -> Done<Option<DeviceId>> {
    let (after, last) = stretch.bounds();
    let most = limit(WALKED_MAX_COUNT);
    let mut lists: Vec<(&TopicName, Walk)> = Vec::new();
    for name in condition.topics() {
        if let Some(topic) = topics::find(connection, stretch.fleet.app, name)? {
            lists.push((name, Walk::read(connection, SUBSCRIBED, [topic, after, last, most], last)?));
        }
    }
    let by_device = condition.expr().holds(&|_| false);
    let devices = match by_device {
        true => Some(Walk::read(connection, DEVICES, [after, last, most], last)?),
        false => None,
    };
    let pages = || lists.iter().map(|(_, page)| page).chain(&devices);
    let upto = pages().map(|page| page.upto).min().unwrap_or(last);
    let candidates: BTreeSet<i64> = match &devices {
        Some(devices) => devices.keys.iter().copied().collect(),
        None => pages().flat_map(|page| page.keys.iter().copied()).collect(),
    };
    let fulfils = |key: &i64| {
        condition.expr().holds(&|topic| lists.iter().any(|(name, page)| *name == topic && page.has(*key)))
    };
    let fulfilling: Vec<i64> = candidates.range(..=upto).copied().filter(|key| fulfils(key)).collect();
    let mut active = keys(connection, ACTIVE, params![fulfilling])?;
    if active.len() >= stretch.max {
        active.truncate(stretch.max);
        found.extend(active.iter().map(|key| device_of(*key)));
        return Ok(active.last().map(|key| device_of(*key)));
    }
    found.extend(active.iter().map(|key| device_of(*key)));
    Ok((upto < last).then(|| device_of(upto)))
}
