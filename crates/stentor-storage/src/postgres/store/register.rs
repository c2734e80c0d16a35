//! Registering devices in bulk.
//!
//! Ids are given in the order of the caller; a repeat writes nothing but `token_since`.

use std::sync::LazyLock;
use std::time::Duration;

use crate::postgres::copy_rows::CopyRows;
use crate::postgres::engine::Connection;
use stentor_core::device::{DEVICE_TEXTS_COUNT, Registration};
use stentor_core::ports::store::{Registered, Replacement};
use stentor_core::time::Timestamp;

use super::app_providers::{self, device_of};
use super::device_texts;
use super::registrar::Registrar;
use super::registration::{RegistrationBatch, TokenMatch};
use crate::postgres::query::copy;
use crate::sql::{Done, Portion};

/// The largest number of rows for users, tags and topics that one transaction writes.
const ROWS_MAX_COUNT: u64 = 16_384;
/// The time after which a transaction takes no more registrations. A whole batch of plain ones takes less on most machines, and other
/// writers wait at most 100 ms.
const TIME: Duration = Duration::from_millis(80);

/// Registers the first of a batch, as many as one transaction takes: plain ones all, of those with much beside them fewer.
pub(super) fn some(connection: &Connection, batch: &RegistrationBatch) -> Done<Vec<Registered>> {
    app_providers::check_app(connection, batch.app)?;
    let mut registrar = Registrar::new(connection, batch)?;
    let (found, mut formers) = (registrar.look_up()?, registrar.look_up_formers()?);
    // The lookups cost the same for every batch; only the writes depend on the tags, topics and users of the devices.
    let portion = Portion::of(connection, ROWS_MAX_COUNT, TIME);
    let mut registered = Vec::with_capacity(found.len());
    let mut keys: Vec<i64> = Vec::with_capacity(found.len());
    for ((at, one), found) in batch.given.iter().enumerate().zip(found) {
        // At least one, or a batch would never be finished.
        if !keys.is_empty() && portion.is_over() {
            break;
        }
        let (key, created, replacement) = match (found, formers.remove(&at)) {
            (TokenMatch::New, None) => (registrar.insert(at, one)?, true, Replacement::None),
            (TokenMatch::New, Some(former)) => {
                (registrar.move_token(at, former, one)?, false, Replacement::Renewed)
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
        keys.push(key);
        registered.push(Registered { device: device_of(key), created, replacement });
    }
    registrar.close()?;
    Ok(registered)
}

/// A new device's row.
pub(super) struct NewRow<'a> {
    pub(super) key: i64,
    pub(super) hash: i64,
    pub(super) given: &'a Registration,
    pub(super) user: Option<i64>,
    pub(super) tags: Option<String>,
    pub(super) listed: bool,
    pub(super) now: Timestamp,
}

/// The columns of a new device.
static COLUMNS: LazyLock<String> = LazyLock::new(|| {
    let texts = device_texts::list(str::to_owned);
    format!(
        "devices (key, token_hash, token_since, registered_at, platform, listed, owner, token, tags, {texts})"
    )
});
const COLUMNS_COUNT: i16 = 9 + DEVICE_TEXTS_COUNT as i16;

/// Writes rows of new devices, best in order of key.
pub(super) fn insert(connection: &Connection, rows: &[NewRow<'_>]) -> Done<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut copied = CopyRows::new(COLUMNS_COUNT);
    for row in rows {
        copied.row();
        copied.bigint(row.key);
        copied.bigint(row.hash);
        copied.bigint(row.now.as_millis());
        copied.bigint(row.now.as_millis());
        copied.smallint(row.given.platform.code().into());
        copied.boolean(row.listed);
        copied.bigint(row.user);
        copied.text(row.given.token.expose());
        copied.text(row.tags.as_deref());
        row.given.facts.texts().into_iter().for_each(|text| copied.text(text));
    }
    copy(connection, &COLUMNS, copied)
}
