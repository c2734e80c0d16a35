//! Apps at providers, called fleets in the tables: the devices of one app at one provider, side by side in order of id.

use std::cell::RefCell;

use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::ports::store::StoreError;

use super::sequences::{self, DEVICE_BITS, DEVICE_MAX, FLEET_MAX};
use crate::sql::{
    Connection, Done, Row, code, damaged, exists, int, missing, number, one, params, readable, run,
};

/// The devices of one app at one provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AppProvider {
    pub(crate) no: u64,
    pub(crate) app: AppId,
    pub(crate) provider: ProviderKind,
}

/// The fleets that a transaction has read.
#[derive(Default)]
pub(crate) struct FleetCache(RefCell<Vec<AppProvider>>);

impl FleetCache {
    /// Remembers a fleet.
    pub(crate) fn note(&self, fleet: AppProvider) {
        let mut known = self.0.borrow_mut();
        if !known.contains(&fleet) {
            known.push(fleet);
        }
    }

    /// Returns the fleet of an app at a provider; creates it if it is missing.
    pub(crate) fn of(
        &self,
        connection: &Connection,
        app: AppId,
        provider: ProviderKind,
    ) -> Done<AppProvider> {
        match self.find(connection, app, provider)? {
            Some(known) => Ok(known),
            None => ensure(connection, app, provider).inspect(|fleet| self.note(*fleet)),
        }
    }

    /// Finds the fleet of an app at a provider.
    pub(crate) fn find(
        &self,
        connection: &Connection,
        app: AppId,
        provider: ProviderKind,
    ) -> Done<Option<AppProvider>> {
        let is_it = |fleet: &&AppProvider| (fleet.app, fleet.provider) == (app, provider);
        if let Some(known) = self.0.borrow().iter().find(is_it) {
            return Ok(Some(*known));
        }
        Ok(find(connection, app, provider)?.inspect(|fleet| self.note(*fleet)))
    }

    /// Returns the fleet of a number.
    pub(crate) fn by_no(&self, connection: &Connection, no: u64) -> Done<AppProvider> {
        if let Some(known) = self.0.borrow().iter().find(|fleet| fleet.no == no) {
            return Ok(*known);
        }
        let fleet = by_no(connection, no)?;
        self.note(fleet);
        Ok(fleet)
    }
}

impl AppProvider {
    /// Returns a device's key; `None` for a number that no device has.
    pub(crate) fn key(self, device: DeviceId) -> Option<i64> {
        (device.raw() <= DEVICE_MAX).then(|| int(self.no << DEVICE_BITS | device.raw()))
    }

    /// Returns the key that bounds the devices up to this one.
    pub(crate) fn bound(self, device: DeviceId) -> i64 {
        int(self.no << DEVICE_BITS | device.raw().min(DEVICE_MAX))
    }

    fn read(row: &Row<'_>) -> Done<Self> {
        Self::read_at(row, 0)
    }

    /// Reads its number, app and provider from three columns of a row, this one first.
    pub(crate) fn read_at(row: &Row<'_>, first: usize) -> Done<Self> {
        let app = AppId::from_raw(number(row, first + 1)?);
        Ok(Self { no: number(row, first)?, app, provider: code(row, first + 2, ProviderKind::from_code)? })
    }
}

/// Returns the device's id.
pub(crate) const fn device_of(key: i64) -> DeviceId {
    DeviceId::from_raw(key.unsigned_abs() & DEVICE_MAX)
}

/// Returns the fleet's number.
pub(crate) const fn fleet_of(key: i64) -> u64 {
    key.unsigned_abs() >> DEVICE_BITS
}

/// Fails if an app does not exist.
pub(crate) fn check_app(connection: &Connection, app: AppId) -> Done<()> {
    let known = exists(connection, "SELECT 1 FROM apps WHERE id = ?1", [int(app.raw())])?;
    if known { Ok(()) } else { Err(missing("app")) }
}

/// Lists an app's fleets, by provider.
pub(crate) fn of_app(connection: &Connection, app: AppId) -> Done<Vec<AppProvider>> {
    let sql = "SELECT no, app, provider FROM fleets WHERE app = ?1 ORDER BY provider";
    Ok(readable(connection, "fleets", (sql, [int(app.raw())]), usize::MAX, AppProvider::read)?.0)
}

/// Finds the fleet of an app at a provider.
pub(crate) fn find(connection: &Connection, app: AppId, provider: ProviderKind) -> Done<Option<AppProvider>> {
    let sql = "SELECT no, app, provider FROM fleets WHERE app = ?1 AND provider = ?2";
    one(connection, sql, params![int(app.raw()), provider.code()], AppProvider::read)
}

/// Returns a fleet by its number.
pub(crate) fn by_no(connection: &Connection, no: u64) -> Done<AppProvider> {
    let fleet =
        one(connection, "SELECT no, app, provider FROM fleets WHERE no = ?1", [int(no)], AppProvider::read)?;
    fleet.ok_or_else(|| damaged("a fleet is missing"))
}

/// Finds the fleet or makes it.
pub(crate) fn ensure(connection: &Connection, app: AppId, provider: ProviderKind) -> Done<AppProvider> {
    if let Some(fleet) = find(connection, app, provider)? {
        return Ok(fleet);
    }
    // The number of a removed fleet is not given again: keys of devices that are still to be removed begin with it.
    let no = sequences::next(connection, "fleet")?;
    if no > FLEET_MAX {
        return Err(StoreError::LimitReached(format!("{FLEET_MAX} apps and providers together")).into());
    }
    let sql = "INSERT INTO fleets (no, app, provider, active_count) VALUES (?1, ?2, ?3, 0)";
    run(connection, sql, params![int(no), int(app.raw()), provider.code()])?;
    Ok(AppProvider { no, app, provider })
}

/// Counts devices that joined or left the audience.
pub(crate) fn count_active(connection: &Connection, fleet: u64, change: i64) -> Done<()> {
    let sql = "UPDATE fleets SET active_count = active_count + ?2 WHERE no = ?1";
    if change == 0 { Ok(()) } else { run(connection, sql, params![int(fleet), change]).map(drop) }
}

/// Finds a device of the app: its fleet and key.
pub(crate) fn locate(
    connection: &Connection,
    app: AppId,
    device: DeviceId,
) -> Done<Option<(AppProvider, i64)>> {
    // A key begins with its fleet, which the id does not contain. An app has one fleet for each push service.
    for fleet in of_app(connection, app)? {
        let Some(key) = fleet.key(device) else { continue };
        if exists(connection, "SELECT 1 FROM devices WHERE key = ?1", [key])? {
            return Ok(Some((fleet, key)));
        }
    }
    Ok(None)
}

/// Finds a device of the app, or fails if it does not exist.
pub(crate) fn require(connection: &Connection, app: AppId, device: DeviceId) -> Done<(AppProvider, i64)> {
    locate(connection, app, device)?.ok_or(missing("device"))
}

/// Fails if a device number exceeds the range of a key.
pub(crate) fn check_device_number(last: u64) -> Done<()> {
    if last > DEVICE_MAX {
        return Err(StoreError::LimitReached(format!("{DEVICE_MAX} devices")).into());
    }
    Ok(())
}
