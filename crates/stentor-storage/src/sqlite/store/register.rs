//! Registering devices in bulk.
//!
//! Look-ups go through the token hashes in their order, so that neighbours share pages; ids are given in the order of
//! the caller; a repeat writes nothing but `token_since`.

use std::sync::LazyLock;
use std::time::Duration;

use rusqlite::Connection;
use stentor_core::device::{DEVICE_TEXTS_COUNT, Registration};
use stentor_core::ports::store::{Registered, Replacement};
use stentor_core::time::Timestamp;

use super::app_providers::{self, device_of};
use super::device_texts;
use super::registrar::Registrar;
use super::registration::{RegistrationBatch, TokenMatch};
use crate::sql::{Done, Portion};
use crate::sqlite::bulk;

/// The largest number of rows for users, tags and topics that one transaction writes, including those written by triggers.
const ROWS_MAX_COUNT: u64 = 16_384;
/// The time after which a transaction takes no more registrations. The writes at its end take as long again, and other writers wait at most
/// 100 ms.
const TIME: Duration = Duration::from_millis(25);
/// The largest number of topics that one transaction adds to one device; more are added by later ones.
const TOPICS_AT_ONCE_MAX_COUNT: usize = 256;

/// Returns true if registering a device takes several transactions.
pub(super) fn takes_parts(one: &Registration) -> bool {
    one.topics.len() > TOPICS_AT_ONCE_MAX_COUNT
}

/// Divides a registration into parts, one per transaction: the later ones only add topics.
pub(super) fn parts(one: &Registration) -> impl Iterator<Item = Registration> {
    one.topics
        .chunks(TOPICS_AT_ONCE_MAX_COUNT)
        .map(|topics| Registration { topics: topics.to_vec(), ..one.clone() })
}

/// Registers the first of a batch, as many as one transaction takes: plain ones all, of those with much beside them fewer.
pub(super) fn some(connection: &Connection, batch: &RegistrationBatch) -> Done<Vec<Registered>> {
    up_to(connection, batch, &Portion::of(connection, ROWS_MAX_COUNT, TIME))
}

fn up_to(connection: &Connection, batch: &RegistrationBatch, portion: &Portion<'_>) -> Done<Vec<Registered>> {
    app_providers::check_app(connection, batch.app)?;
    let mut registrar = Registrar::new(connection, batch)?;
    let (found, mut formers) = (registrar.look_up()?, registrar.look_up_formers()?);
    let mut registered = Vec::with_capacity(found.len());
    let mut keys: Vec<i64> = Vec::with_capacity(found.len());
    for (at, (one, found)) in batch.given.iter().zip(found).enumerate() {
        // At least one, or a batch would never be finished.
        if portion.is_over() && !keys.is_empty() {
            break;
        }
        let (key, created, replacement) = match (found, formers.remove(&at)) {
            (TokenMatch::New, None) => (registrar.insert(one)?, true, Replacement::None),
            (TokenMatch::New, Some(former)) => {
                (registrar.move_token(former, one)?, false, Replacement::Renewed)
            }
            (TokenMatch::Known(holder), Some(former)) => {
                (registrar.merge(*holder, former, one)?, false, Replacement::Merged)
            }
            (TokenMatch::Known(kept), None) => (registrar.renew(*kept, one)?, false, Replacement::None),
            // `keys` has it: equal tokens keep the caller's order, so the earlier one was done before.
            (TokenMatch::Repeats(earlier), _) => {
                (registrar.renew_again(keys[earlier], one)?, false, Replacement::None)
            }
        };
        registrar.subscribe(key, &one.topics)?;
        keys.push(key);
        registered.push(Registered { device: device_of(key), created, replacement });
    }
    registrar.note(&keys, &registered)?;
    registrar.close()?;
    Ok(registered)
}

static INSERT: LazyLock<String> = LazyLock::new(|| {
    let texts = device_texts::list(str::to_owned);
    format!(
        "INSERT OR FAIL INTO devices (key, token_since, registered_at, platform, listed, owner, token, tags,
        {texts}) VALUES "
    )
});
const COLUMNS: usize = 8 + DEVICE_TEXTS_COUNT;

/// A new device's row.
pub(super) struct NewRow<'a> {
    pub(super) key: i64,
    pub(super) given: &'a Registration,
    pub(super) user: Option<i64>,
    pub(super) tags: Option<String>,
    pub(super) listed: bool,
    pub(super) now: Timestamp,
}

/// Writes rows of new devices, best in order of key.
pub(super) fn insert(connection: &Connection, rows: &[NewRow<'_>]) -> Done<()> {
    bulk::insert(connection, &INSERT, COLUMNS, rows, |places, row| {
        let (given, since) = (row.given, row.now.as_millis());
        places.put(row.key)?;
        places.put(since)?;
        places.put(since)?;
        places.put(given.platform.code())?;
        places.put(row.listed)?;
        places.put(row.user)?;
        places.put(given.token.expose())?;
        places.put(row.tags.as_deref())?;
        given.facts.texts().into_iter().try_for_each(|text| places.put(text))
    })
}

#[cfg(test)]
mod tests;
