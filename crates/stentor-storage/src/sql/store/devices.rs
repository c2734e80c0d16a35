//! Devices: registration, reading, changes, retirement and removal.

use std::collections::HashMap;
use std::sync::LazyLock;

use async_trait::async_trait;
use stentor_core::device::{
    DEVICE_TEXTS, DEVICE_TEXTS_COUNT, Device, DeviceFacts, DeviceKeys, DevicePatch, DeviceText, Platform,
    ProviderKind, PushToken, Registration, Retirement,
};
use stentor_core::id::{AppId, DeviceId};
use stentor_core::name::{ExternalId, Tag};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{DeviceFilter, DeviceStore, Page, Precondition, Registered, StoreError};
use stentor_core::time::Timestamp;

use super::app_providers::{self, AppProvider, device_of};
use super::sequences::{DEVICE_BITS, DEVICE_MAX};
use super::tags::{change_tags, join_tags, split_tags};
use super::{device_texts, owners, rehearsal, removal};
use crate::device_keys;
use crate::sql::dialect::DialectText;
use crate::sql::{
    Connection, Done, EngineParts as _, Row, SqlEngine, SqlStore, all, code, conflict, damaged, int,
    maybe_code, maybe_text, maybe_time, missing, number, one, params, readable, run, text, time,
};

/// The columns read of a device.
static COLUMNS: LazyLock<String> = LazyLock::new(|| {
    let texts = device_texts::list(|name| format!("d.{name}"));
    format!(
        "d.key, d.token_since, d.registered_at, d.platform, d.listed, d.retired_at, d.retired_reason,
        u.external_id, d.token, d.tags, {texts}"
    )
});
/// The first text among these.
const FIRST_TEXT: usize = 10;
/// The column behind these: the keys of a device of the gateway.
const KEYS_COLUMN: usize = FIRST_TEXT + DEVICE_TEXTS_COUNT;
/// The first column of the fleet, where it is read too.
const FLEET_COLUMN: usize = KEYS_COLUMN + 1;

/// Reads devices of the gateway, and of others.
static SELECTS: LazyLock<[String; 2]> = LazyLock::new(|| {
    let columns = &*COLUMNS;
    let select =
        |keys| format!("SELECT {columns}, {keys} FROM devices d LEFT JOIN users u ON u.no = d.owner");
    [select(device_keys::COLUMN), select("NULL")]
});

/// Finds a device by its app and id, fleet by fleet as `app_providers::locate` does.
static FIND: DialectText = DialectText::new(|dialect| {
    let (gateway, keys, join) = (ProviderKind::Gateway.code(), device_keys::COLUMN, dialect.join_in_order);
    let columns = &*COLUMNS;
    format!(
        "SELECT {columns}, CASE WHEN f.provider = {gateway} THEN {keys} END, f.no, f.app, f.provider
        FROM fleets f {join} devices d ON d.key = (f.no << ?3 | ?2)
        LEFT JOIN users u ON u.no = d.owner
        WHERE f.app = ?1 AND EXISTS (SELECT 1 FROM apps WHERE id = ?1) ORDER BY f.provider LIMIT 1"
    )
});

#[async_trait]
impl<E: SqlEngine> DeviceStore for SqlStore<E> {
    async fn register_some(
        &self,
        app: AppId,
        registrations: &[Registration],
        now: Timestamp,
    ) -> Result<Vec<Registered>, StoreError> {
        E::register(self, app, registrations, now).await
    }

    async fn validate_some_registrations(
        &self,
        app: AppId,
        given: &[Registration],
        _now: Timestamp,
    ) -> Result<usize, StoreError> {
        let (given, count) = (given.to_vec(), given.len());
        self.read_long(move |connection| rehearsal::check(connection, app, &given)).await.map(|()| count)
    }

    async fn device(&self, app: AppId, id: DeviceId) -> Result<Device, StoreError> {
        self.look_up(move |connection| show(connection, app, id)).await
    }

    async fn holders(
        &self,
        app: AppId,
        provider: ProviderKind,
        tokens: &[PushToken],
    ) -> Result<Vec<Option<Device>>, StoreError> {
        let tokens = tokens.to_vec();
        self.read(move |connection| holders(connection, app, provider, &tokens)).await
    }

    async fn devices(
        &self,
        app: AppId,
        filter: &DeviceFilter,
        page: Page,
    ) -> Result<Vec<Device>, StoreError> {
        E::list_devices(self, app, filter, page).await
    }

    async fn update_device(
        &self,
        app: AppId,
        id: DeviceId,
        patch: &DevicePatch,
        now: Timestamp,
        precondition: &Precondition<Device>,
    ) -> Result<Device, StoreError> {
        let (patch, precondition) = (patch.clone(), precondition.clone());
        self.write_registry(move |connection| {
            // Checked within the transaction, so that nothing changes between the check and the update.
            precondition.check(|| show(connection, app, id).map(Some))?;
            let device = update(connection, app, id, &patch, now)?;
            if patch.token.is_some() {
                connection.cut_off(app, id, device.provider);
            }
            Ok(device)
        })
        .await
    }

    async fn put_device_keys(
        &self,
        app: AppId,
        id: DeviceId,
        keys: Option<&DeviceKeys>,
    ) -> Result<(), StoreError> {
        let name = keys.map(device_keys::name_of);
        self.write_registry_first(move |connection| {
            put_keys(connection, app, id, name.as_deref())?;
            // Otherwise a present session would continue in clear.
            connection.cut_off(app, id, ProviderKind::Gateway);
            Ok(())
        })
        .await
    }
}

/// Removes a device of which the precondition holds.
pub(crate) fn remove(
    connection: &Connection,
    app: AppId,
    id: DeviceId,
    precondition: &Precondition<Device>,
) -> Done<()> {
    // Checked within the transaction, as in `update_device`.
    precondition.check(|| show(connection, app, id).map(Some))?;
    let (fleet, key) = app_providers::require(connection, app, id)?;
    removal::device(connection, fleet, key)?;
    connection.cut_off(app, id, fleet.provider);
    Ok(())
}

/// Counts listed, unretired devices by provider, leaving out providers without any.
pub(crate) fn counts(connection: &Connection, app: AppId) -> Done<Vec<(ProviderKind, u64)>> {
    let sql =
        "SELECT provider, active_count FROM fleets WHERE app = ?1 AND active_count <> 0 ORDER BY provider";
    let count = |row: &Row<'_>| Ok((code(row, 0, ProviderKind::from_code)?, number(row, 1)?));
    Ok(readable(connection, "fleets", (sql, [int(app.raw())]), usize::MAX, count)?.0)
}

/// Moves a token to a device and revives the device. Returns false if another device holds the token.
pub(crate) fn move_token(
    connection: &Connection,
    fleet: AppProvider,
    key: i64,
    token: &PushToken,
    now: Timestamp,
) -> Done<bool> {
    // Two devices with one token would each be sent every message.
    if connection.holder(fleet, token)?.is_some_and(|holder| holder != key) {
        return Ok(false);
    }
    let sql = "SELECT token, listed AND retired_at IS NOT NULL FROM devices WHERE key = ?1";
    let read = |row: &Row<'_>| Ok((text(row, 0, PushToken::new)?, row.get::<bool>(1)?));
    let (former, revived) = one(connection, sql, [key], read)?.ok_or(missing("device"))?;
    connection.set_token(fleet, key, &former, token)?;
    let sql = "UPDATE devices SET token_since = ?2, retired_at = NULL, retired_reason = NULL WHERE key = ?1";
    run(connection, sql, [key, now.as_millis()])?;
    app_providers::count_active(connection, fleet.no, i64::from(revived))?;
    Ok(true)
}

/// Takes a device out of every audience, unless its token is newer than `since`.
pub(crate) fn retire(
    connection: &Connection,
    fleet: AppProvider,
    key: i64,
    reason: Reason,
    since: Timestamp,
    now: Timestamp,
) -> Done<()> {
    // The push service's answer applies to the token used: a token registered since stays.
    let sql = "UPDATE devices SET retired_at = ?2, retired_reason = ?3
        WHERE key = ?1 AND retired_at IS NULL AND token_since <= ?4 RETURNING listed";
    let values = params![key, now.as_millis(), reason.code(), since.as_millis()];
    let listed = one(connection, sql, values, |row| row.get::<bool>(0))?;
    app_providers::count_active(connection, fleet.no, -i64::from(listed == Some(true)))
}

/// Returns the statement that reads devices at a provider, without their place.
pub(crate) fn select(provider: ProviderKind) -> &'static str {
    let [of_gateway, of_others] = &*SELECTS;
    if provider == ProviderKind::Gateway { of_gateway } else { of_others }
}

fn show(connection: &Connection, app: AppId, id: DeviceId) -> Done<Device> {
    match find(connection, app, id) {
        Ok(Some(device)) => Ok(device),
        // The read by steps finds the missing part, and isolates damaged rows from the others.
        Ok(None) => show_by_steps(connection, app, id),
        Err(fault) if fault.is_damage() => show_by_steps(connection, app, id),
        Err(fault) => Err(fault),
    }
}

/// Reads a device of an app with its fleet in one statement: each statement has a price of its own.
fn find(connection: &Connection, app: AppId, id: DeviceId) -> Done<Option<Device>> {
    // A larger number would run over into the number of another fleet.
    if id.raw() > DEVICE_MAX {
        return Ok(None);
    }
    let values = params![int(app.raw()), int(id.raw()), DEVICE_BITS];
    one(connection, FIND.of(connection.dialect()), values, |row| {
        device(row, AppProvider::read_at(row, FLEET_COLUMN)?)
    })
}

fn show_by_steps(connection: &Connection, app: AppId, id: DeviceId) -> Done<Device> {
    app_providers::check_app(connection, app)?;
    let (fleet, key) = app_providers::require(connection, app, id)?;
    let sql = format!("{} WHERE d.key = ?1", select(fleet.provider));
    one(connection, &sql, [key], |row| device(row, fleet))?.ok_or(missing("device"))
}

fn holders(
    connection: &Connection,
    app: AppId,
    provider: ProviderKind,
    tokens: &[PushToken],
) -> Done<Vec<Option<Device>>> {
    app_providers::check_app(connection, app)?;
    let Some(fleet) = app_providers::find(connection, app, provider)? else {
        return Ok(vec![None; tokens.len()]);
    };
    let keys = connection.holders(fleet, tokens)?;
    let sql = format!("{} WHERE {}", select(provider), connection.dialect().is_in("d.key", 1));
    let held: Vec<i64> = keys.iter().flatten().copied().collect();
    let read = |row: &Row<'_>| device(row, fleet);
    let devices: HashMap<_, _> =
        all(connection, &sql, params![held], read)?.into_iter().map(|one| (one.id, one)).collect();
    let holder = |key: &Option<i64>| devices.get(&device_of((*key)?)).cloned();
    Ok(keys.iter().map(holder).collect())
}

/// Reads a device from the columns of `select`.
pub(crate) fn device(row: &Row<'_>, fleet: AppProvider) -> Done<Device> {
    let tags: Option<String> = row.get(9)?;
    let tags = split_tags(tags.as_deref()).map(Tag::new).collect::<Result<_, _>>();
    let texts = DeviceFacts::of_texts(device_texts::read(row, FIRST_TEXT)?);
    let facts = DeviceFacts {
        user: maybe_text(row, 7, ExternalId::new)?,
        tags: tags.map_err(|invalid| damaged(&format!("a kept tag: {invalid}")))?,
        ..texts.map_err(|invalid| damaged(&format!("a kept name: {invalid}")))?
    };
    let retired = maybe_time(row, 5)?.zip(maybe_code(row, 6, Reason::from_code)?);
    Ok(Device {
        id: device_of(row.get(0)?),
        app: fleet.app,
        platform: code(row, 3, Platform::from_code)?,
        provider: fleet.provider,
        token: text(row, 8, PushToken::new)?,
        facts,
        registered_at: time(row, 2)?,
        token_since: time(row, 1)?,
        retired: retired.map(|(at, reason)| Retirement { at, reason }),
        listed: row.get(4)?,
        keys: maybe_text(row, KEYS_COLUMN, device_keys::read)?,
    })
}

fn put_keys(connection: &Connection, app: AppId, id: DeviceId, name: Option<&str>) -> Done<()> {
    let (fleet, key) = app_providers::require(connection, app, id)?;
    // If two servers write keys of the device at once, one waits for the other.
    connection.lock_device(key)?;
    if fleet.provider != ProviderKind::Gateway {
        return Err(missing("device"));
    }
    // The keys are the name of the row, so that a change of them is another row.
    let agent = device_keys::agent_of(id);
    run(connection, "DELETE FROM channels WHERE agent = ?1", [agent.as_str()])?;
    let Some(name) = name else { return Ok(()) };
    let sql = "INSERT INTO channels (agent, name, app, device) VALUES (?1, ?2, ?3, ?4)";
    run(connection, sql, params![agent, name, int(app.raw()), int(id.raw())]).map(drop)
}

fn update(
    connection: &Connection,
    app: AppId,
    id: DeviceId,
    patch: &DevicePatch,
    now: Timestamp,
) -> Done<Device> {
    let (fleet, key) = app_providers::require(connection, app, id)?;
    if let Some(token) = &patch.token
        && !move_token(connection, fleet, key, token, now)?
    {
        return Err(conflict("another device holds the token"));
    }
    if let Some(user) = &patch.user {
        let user = user.as_ref().map(|user| owners::ensure(connection, app, user, now)).transpose()?;
        let former = one(connection, "SELECT owner FROM devices WHERE key = ?1", [key], |row| row.get(0))?;
        owners::move_device(connection, key, former.flatten(), user)?;
        run(connection, "UPDATE devices SET owner = ?2 WHERE key = ?1", params![key, user])?;
    }
    for (DeviceText { name, .. }, new) in DEVICE_TEXTS.iter().zip(patch.texts()) {
        if let Some(text) = new {
            let sql = format!("UPDATE devices SET {name} = ?2 WHERE key = ?1");
            run(connection, &sql, params![key, text])?;
        }
    }
    if let Some(tags) = &patch.tags {
        let former = one(connection, "SELECT tags FROM devices WHERE key = ?1", [key], |row| row.get(0))?;
        let (former, tags): (Option<String>, _) = (former.flatten(), join_tags(tags));
        change_tags(connection, app, key, former.as_deref(), tags.as_deref())?;
        run(connection, "UPDATE devices SET tags = ?2 WHERE key = ?1", params![key, tags])?;
    }
    show(connection, app, id)
}
