//! A rehearsal of registrations: reports their refusals by reading alone, so that no writer waits for it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use stentor_core::device::Registration;
use stentor_core::id::AppId;
use stentor_core::limits::TOPICS_PER_DEVICE_MAX_COUNT;

use super::{app_providers, topics};
use crate::sql::{Connection, Done, all};

/// Refuses registrations of which one would give a device more topics than it may have.
pub(crate) fn check(connection: &Connection, app: AppId, given: &[Registration]) -> Done<()> {
    app_providers::check_app(connection, app)?;
    let mut known = HashMap::new();
    for one in given.iter().filter(|one| !one.topics.is_empty()) {
        let topics = match known.entry((one.provider, one.token.expose())) {
            Entry::Occupied(topics) => topics.into_mut(),
            Entry::Vacant(place) => place.insert(kept_topics(connection, app, one)?),
        };
        topics.extend(one.topics.iter().map(|topic| topic.as_str().to_owned()));
        if topics.len() > TOPICS_PER_DEVICE_MAX_COUNT {
            return Err(topics::too_many());
        }
    }
    Ok(())
}

/// Lists the topics of the device that has a token already.
fn kept_topics(connection: &Connection, app: AppId, one: &Registration) -> Done<HashSet<String>> {
    let Some(fleet) = app_providers::find(connection, app, one.provider)? else { return Ok(HashSet::new()) };
    let Some(key) = connection.holder(fleet, &one.token)? else { return Ok(HashSet::new()) };
    let sql = "SELECT t.name FROM subscriptions d JOIN topics t ON t.no = d.topic WHERE d.key = ?1";
    Ok(all(connection, sql, [key], |row| row.get(0))?.into_iter().collect())
}
