//! A rehearsal of registrations: reports their refusals by reading alone, so that no writer waits for it.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};

use stentor_core::device::{ProviderKind, Registration};
use stentor_core::id::AppId;
use stentor_core::limits::TOPICS_PER_DEVICE_MAX_COUNT;

use super::{app_providers, topics};
use crate::sql::{Connection, Done, all, limit, one as first};

/// Refuses registrations of which one would give a device more topics than it may have.
pub(crate) fn check(connection: &Connection, app: AppId, given: &[Registration]) -> Done<()> {
    app_providers::check_app(connection, app)?;
    check_merges(connection, app, given)?;
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

/// Lists the topics of the devices that have the token, or the former token, of a registration already.
fn kept_topics(connection: &Connection, app: AppId, one: &Registration) -> Done<HashSet<String>> {
    let Some(fleet) = app_providers::find(connection, app, one.provider)? else { return Ok(HashSet::new()) };
    let mut topics = HashSet::new();
    for token in [Some(&one.token), one.replaces()].into_iter().flatten() {
        let Some(key) = connection.holder(fleet, token)? else { continue };
        let sql = "SELECT t.name FROM subscriptions d JOIN topics t ON t.no = d.topic WHERE d.key = ?1";
        topics.extend(all(connection, sql, [key], |row| row.get::<String>(0))?);
    }
    Ok(topics)
}

/// Refuses registrations of which one would make one device, with more topics than it may have, of two.
fn check_merges(connection: &Connection, app: AppId, given: &[Registration]) -> Done<()> {
    let providers: BTreeSet<ProviderKind> =
        given.iter().filter(|one| one.replaces().is_some()).map(|one| one.provider).collect();
    for provider in providers {
        let Some(fleet) = app_providers::find(connection, app, provider)? else { continue };
        let moves = given.iter().filter(|one| one.provider == provider);
        let both: Vec<_> =
            moves.filter_map(|one| Some((one.token.clone(), one.replaces()?.clone()))).collect();
        let (tokens, formers): (Vec<_>, Vec<_>) = both.into_iter().unzip();
        let former_holders = connection.holders(fleet, &formers)?;
        let holders = connection.holders(fleet, &tokens)?;
        for pair in holders.into_iter().zip(former_holders) {
            let (Some(one), Some(other)) = pair else { continue };
            let sql = "SELECT count(DISTINCT topic) FROM subscriptions WHERE key = ?1 OR key = ?2";
            let count: Option<i64> = first(connection, sql, [one, other], |row| row.get(0))?;
            if count.is_some_and(|count| count > limit(TOPICS_PER_DEVICE_MAX_COUNT)) {
                return Err(topics::too_many());
            }
        }
    }
    Ok(())
}
