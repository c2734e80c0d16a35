//! Registering devices in bulk.
//!
//! Ids are given in the order of the caller; a repeat writes nothing but `token_since`.

use std::time::Duration;

use crate::postgres::copy_rows::CopyRows;
use crate::postgres::engine::Connection;
use stentor_core::device::Registration;
use stentor_core::id::AppId;
use stentor_core::name::{Locale, TimeZoneName};
use stentor_core::ports::store::Registered;
use stentor_core::time::Timestamp;

use super::app_providers::{self, device_of};
use super::registrar::{Registrar, TokenMatch};
use super::tokens;
use crate::postgres::query::copy;
use crate::sql::{Done, Portion};

/// Rows for people, tags and topics that one transaction writes.
const ROWS_MAX_COUNT: u64 = 16_384;
/// A transaction takes no more registrations once it took so long. A whole batch of plain ones takes less on most machines,
/// and whoever else wants to write waits no longer than 100 ms.
const TIME: Duration = Duration::from_millis(80);

/// Registrations with all that can be prepared outside the transaction.
pub(super) struct RegistrationBatch {
    pub(super) app: AppId,
    pub(super) given: Vec<Registration>,
    pub(super) hashes: Vec<i64>,
    /// Positions in order of hash; equal tokens keep the caller's order.
    pub(super) by_hash: Vec<usize>,
    pub(super) now: Timestamp,
}

impl RegistrationBatch {
    /// Hashes and sorts.
    pub(super) fn new(app: AppId, registrations: &[Registration], now: Timestamp) -> Self {
        let hash = |one: &Registration| tokens::hash(app, one.provider, &one.token);
        let hashes: Vec<i64> = registrations.iter().map(hash).collect();
        let mut by_hash: Vec<usize> = (0..registrations.len()).collect();
        by_hash.sort_by_key(|at| hashes[*at]);
        Self { app, given: registrations.to_vec(), hashes, by_hash, now }
    }
}

/// Registers the first of a batch, as many as one transaction takes: plain ones all, of those with much beside them fewer.
pub(super) fn some(connection: &Connection, batch: &RegistrationBatch) -> Done<Vec<Registered>> {
    app_providers::check_app(connection, batch.app)?;
    let mut registrar = Registrar::new(connection, batch)?;
    let found = registrar.look_up()?;
    // What is found out costs the same for every batch; only what is written grows with what is beside the devices.
    let portion = Portion::of(connection, ROWS_MAX_COUNT, TIME);
    let mut registered = Vec::with_capacity(found.len());
    let mut keys: Vec<i64> = Vec::with_capacity(found.len());
    for ((at, one), found) in batch.given.iter().enumerate().zip(found) {
        // One at least, or a batch would never come to its end.
        if !keys.is_empty() && portion.is_over() {
            break;
        }
        let (key, created) = match found {
            TokenMatch::New => (registrar.insert(at, one)?, true),
            TokenMatch::Known(kept) => (registrar.renew(*kept, one)?, false),
            // `keys` has it: equal tokens keep the caller's order, so the earlier one was done before.
            TokenMatch::Repeats(earlier) => (registrar.renew_again(keys[earlier], one)?, false),
        };
        keys.push(key);
        registered.push(Registered { device: device_of(key), created });
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
const COLUMNS: &str = "devices (key, token_hash, token_since, registered_at, platform, listed, owner, token, locale, time_zone, tags)";
const COLUMNS_COUNT: i16 = 11;

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
        copied.text(row.given.locale.as_ref().map(Locale::as_str));
        copied.text(row.given.time_zone.as_ref().map(TimeZoneName::as_str));
        copied.text(row.tags.as_deref());
    }
    copy(connection, COLUMNS, copied)
}
