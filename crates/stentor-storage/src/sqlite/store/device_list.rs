//! The list of devices, page by page, a bounded number of rows at a time: few of many rows may match.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use stentor_core::device::{Device, DeviceState};
use stentor_core::id::{AppId, DeviceId};
use stentor_core::name::Tag;
use stentor_core::ports::store::{DeviceFilter, Page, StoreError, TokenKind};

use super::app_providers::{self, AppProvider, device_of};
use super::devices::{device, select};
use super::stretch::WALKED_MAX_COUNT;
use super::{SqliteStore, owners};
use crate::sql::{Done, Row, exists, int, one, params};

/// The filter of a listing within one fleet.
#[derive(Clone)]
pub(super) struct Listing {
    fleet: AppProvider,
    user: Option<i64>,
    tag: Option<Tag>,
    state: Option<DeviceState>,
    kind: Option<TokenKind>,
}

/// Finds the fleets to search; none if no device can match.
pub(super) fn plan(connection: &Connection, app: AppId, filter: &DeviceFilter) -> Done<Vec<Listing>> {
    app_providers::check_app(connection, app)?;
    let user = match &filter.user {
        None => None,
        Some(user) => match owners::find(connection, app, user)? {
            Some((no, _)) => Some(no),
            None => return Ok(Vec::new()),
        },
    };
    let fleets = app_providers::of_app(connection, app)?.into_iter();
    let meant = fleets.filter(|fleet| filter.provider.is_none_or(|provider| provider == fleet.provider));
    let listing =
        |fleet| Listing { fleet, user, tag: filter.tag.clone(), state: filter.state, kind: filter.kind };
    Ok(meant.map(listing).collect())
}

impl SqliteStore {
    /// Lists the first devices of a fleet after the page's cursor.
    pub(super) async fn list(&self, list: Listing, page: Page) -> Result<Vec<Device>, StoreError> {
        let (mut found, mut next) = (Vec::new(), Some(DeviceId::from_raw(page.after)));
        while let Some(after) = next.filter(|_| found.len() < page.limit) {
            let (list, max) = (list.clone(), page.limit - found.len());
            let some = self.read_long(move |connection| list.some(connection, after, max)).await?;
            found.extend(some.0);
            next = some.1;
        }
        Ok(found)
    }
}

impl Listing {
    /// Lists some devices, and gives the device after which to look on; none when there are no more.
    fn some(
        &self,
        connection: &Connection,
        after: DeviceId,
        max: usize,
    ) -> Done<(Vec<Device>, Option<DeviceId>)> {
        let (sql, values) = self.candidates(after);
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        let shown = format!("{} WHERE d.key = ?1 AND {}", select(self.fleet.provider), condition(self.state));
        let (mut found, mut walked) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            let key: i64 = row.get(0)?;
            walked += 1;
            if self.may_be_here(row)? && self.has_tag(connection, key)? {
                match one(connection, &shown, [key], |row| device(row, self.fleet)) {
                    Err(fault) if fault.is_damage() => {
                        crate::sql::note_damage(connection, "devices", key, &fault)
                    }
                    shown => found.extend(shown?.filter(|device| self.is_of_kind(device.token.expose()))),
                }
            }
            if found.len() == max || walked == WALKED_MAX_COUNT {
                return Ok((found, Some(device_of(key))));
            }
        }
        Ok((found, None))
    }

    /// Returns the shortest list that holds all that are meant, as a statement with its values.
    fn candidates(&self, after: DeviceId) -> (&'static str, Vec<Value>) {
        let (after, last) = (self.fleet.bound(after), self.fleet.bound(DeviceId::from_raw(u64::MAX)));
        let bounds = [Value::from(after), Value::from(last)];
        match (self.user, &self.tag) {
            (Some(user), _) => {
                let sql =
                    "SELECT key FROM user_devices WHERE owner = ? AND key > ? AND key <= ? ORDER BY key";
                (sql, [Value::from(user)].into_iter().chain(bounds).collect())
            }
            (None, Some(tag)) => {
                let sql = "SELECT key FROM device_tags WHERE app = ? AND tag = ? AND key > ? AND key <= ? ORDER BY key";
                let of = [Value::from(int(self.fleet.app.raw())), Value::from(tag.as_str().to_owned())];
                (sql, of.into_iter().chain(bounds).collect())
            }
            (None, None) => {
                let sql = match self.state {
                    // Few of many devices: indices have these alone.
                    Some(DeviceState::Retired) => {
                        "SELECT key, token FROM devices WHERE retired_at IS NOT NULL AND key > ? AND key <= ? ORDER BY key"
                    }
                    Some(DeviceState::Unlisted) => {
                        "SELECT key, token FROM devices WHERE NOT listed AND key > ? AND key <= ? ORDER BY key"
                    }
                    None | Some(DeviceState::Active) => {
                        "SELECT key, token FROM devices WHERE key > ? AND key <= ? ORDER BY key"
                    }
                };
                (sql, bounds.into())
            }
        }
    }

    /// Returns true if the row of a candidate allows that it matches, so that a few matching devices among many are found without a look-up
    /// of each.
    fn may_be_here(&self, row: &Row<'_>) -> Done<bool> {
        // The rows of a user's devices, and of a tag's, have the key alone.
        if self.user.is_some() || self.tag.is_some() {
            return Ok(true);
        }
        // A token that cannot be read is met, and reported, when the device is read.
        Ok(self.kind.is_none() || row.str(1).map_or(true, |token| self.is_of_kind(token)))
    }

    fn is_of_kind(&self, token: &str) -> bool {
        self.kind.is_none_or(|kind| kind.includes(token))
    }

    /// Returns true if a user's device has the requested tag.
    fn has_tag(&self, connection: &Connection, key: i64) -> Done<bool> {
        let (Some(_), Some(tag)) = (self.user, &self.tag) else { return Ok(true) };
        let sql = "SELECT 1 FROM device_tags WHERE app = ?1 AND tag = ?2 AND key = ?3";
        exists(connection, sql, params![int(self.fleet.app.raw()), tag.as_str(), key])
    }
}

/// Returns the condition for devices in a state.
fn condition(state: Option<DeviceState>) -> &'static str {
    match state {
        None => "d.listed",
        Some(DeviceState::Active) => "d.listed AND d.retired_at IS NULL",
        Some(DeviceState::Retired) => "d.retired_at IS NOT NULL",
        Some(DeviceState::Unlisted) => "NOT d.listed AND d.retired_at IS NULL",
    }
}
