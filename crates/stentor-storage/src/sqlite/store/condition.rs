//! Search for the devices whose topics fulfil a condition: the subscriptions of the topics are read side by side, each once.
//!
//! All lists are ascending, so the topics of one device are at the heads of the lists at the same time. A condition that a device without
//! topics fulfils is evaluated along the devices, any other along the lists alone.

use rusqlite::{CachedStatement, Connection, Rows};
use stentor_core::id::DeviceId;
use stentor_core::name::TopicName;
use stentor_core::topic::Condition;

use super::app_providers::device_of;
use super::stretch::{Stretch, WALKED_MAX_COUNT};
use super::topics;
use crate::sql::{Done, exists};

/// Selects a device if it is listed and not retired.
pub(super) const IS_ACTIVE: &str = "SELECT 1 FROM devices WHERE key = ?1 AND listed AND retired_at IS NULL";

const SUBSCRIBED: &str =
    "SELECT key FROM subscriptions WHERE topic = ?1 AND key > ?2 AND key <= ?3 ORDER BY key";
const DEVICES: &str = "SELECT key FROM devices WHERE key > ?1 AND key <= ?2 ORDER BY key";

/// Finds listed, unretired devices of the stretch that fulfil the condition; returns the device after which to look on, none
/// when the stretch is over.
pub(super) fn scan(
    connection: &Connection,
    condition: &Condition,
    stretch: Stretch,
    found: &mut Vec<DeviceId>,
) -> Done<Option<DeviceId>> {
    let (after, last) = stretch.bounds();
    let mut lists: Vec<(&TopicName, i64, CachedStatement<'_>)> = Vec::new();
    for name in condition.topics() {
        if let Some(topic) = topics::find(connection, stretch.fleet.app, name)? {
            lists.push((name, topic, connection.prepare_cached(SUBSCRIBED)?));
        }
    }
    let mut walks = Vec::with_capacity(lists.len());
    for (name, topic, statement) in &mut lists {
        walks.push((*name, Walk::begin(statement.query([*topic, after, last])?)?));
    }
    let by_device = condition.expr().holds(&|_| false);
    let mut devices = connection.prepare_cached(DEVICES)?;
    let mut devices = if by_device { Some(Walk::begin(devices.query([after, last])?)?) } else { None };
    let (full, mut walked) = (found.len() + stretch.max, 0);
    loop {
        let head = match &mut devices {
            Some(devices) => devices.step()?,
            None => walks.iter().filter_map(|(_, walk)| walk.head).min(),
        };
        let Some(key) = head else { return Ok(None) };
        walked += 1;
        let mut having = Vec::with_capacity(walks.len());
        for (name, walk) in &mut walks {
            if walk.is_at(key)? {
                having.push(*name);
                walked += 1;
            }
        }
        let fulfilled = condition.expr().holds(&|topic| having.contains(&topic));
        // Checked last, because it costs a look-up of its own.
        if fulfilled && exists(connection, IS_ACTIVE, [key])? {
            found.push(device_of(key));
        }
        if found.len() == full || walked >= WALKED_MAX_COUNT {
            return Ok(Some(device_of(key)));
        }
    }
}

/// One ascending list of keys, read once.
struct Walk<'a> {
    rows: Rows<'a>,
    head: Option<i64>,
}

impl<'a> Walk<'a> {
    fn begin(rows: Rows<'a>) -> Done<Self> {
        let mut walk = Self { rows, head: None };
        walk.step()?;
        Ok(walk)
    }

    /// Returns the head and advances to the next.
    fn step(&mut self) -> Done<Option<i64>> {
        let head = self.head;
        self.head = match self.rows.next()? {
            Some(row) => Some(row.get(0)?),
            None => None,
        };
        Ok(head)
    }

    /// Returns true if the list has the key, and advances past it.
    fn is_at(&mut self, key: i64) -> Done<bool> {
        while self.head.is_some_and(|head| head < key) {
            self.step()?;
        }
        let found = self.head == Some(key);
        if found {
            self.step()?;
        }
        Ok(found)
    }
}
