//! Tokens that devices were offered and have not used yet: until then the former ones are theirs, and lead to them afterwards.

use stentor_core::device::{ProviderKind, PushToken};
use stentor_core::id::{AppId, DeviceId};
use stentor_core::limits::FORMER_TOKENS_PER_DEVICE_MAX_COUNT;
use stentor_core::time::Timestamp;

use super::app_providers::{self, AppProvider};
use super::devices::move_token;
use crate::sql::{Connection, Done, Row, exists, int, limit, missing, number, one, params, run};

/// Stores the token offered to a device; a device has only one offer.
pub(crate) fn offer(
    connection: &Connection,
    app: AppId,
    device: DeviceId,
    token: &PushToken,
    now: Timestamp,
) -> Done<()> {
    let (_, key) = app_providers::require(connection, app, device)?;
    let former = one(connection, "SELECT token FROM devices WHERE key = ?1", [key], |row| row.get(0))?;
    // Stored with the offer: `take` refuses the offer if the device has got another token since.
    let former: String = former.ok_or(missing("device"))?;
    let (app, device) = (int(app.raw()), int(device.raw()));
    let sql = "DELETE FROM offered_tokens WHERE device = ?1 OR (app = ?2 AND token = ?3)";
    run(connection, sql, params![device, app, token.expose()])?;
    let sql =
        "INSERT INTO offered_tokens (device, app, offered_at, token, former) VALUES (?1, ?2, ?3, ?4, ?5)";
    run(connection, sql, params![device, app, now.as_millis(), token.expose(), former]).map(drop)
}

/// Moves a device to its offered token; returns the device, or `None` if the offer is not valid any more.
pub(crate) fn take(
    connection: &Connection,
    app: AppId,
    token: &PushToken,
    now: Timestamp,
) -> Done<Option<DeviceId>> {
    // The first use consumes an offer, whether or not it succeeds.
    let sql = "DELETE FROM offered_tokens WHERE app = ?1 AND token = ?2 RETURNING device, former";
    let read = |row: &Row<'_>| Ok((DeviceId::from_raw(number(row, 0)?), row.get::<String>(1)?));
    let offer = one(connection, sql, params![int(app.raw()), token.expose()], read)?;
    let Some((device, former)) = offer else { return Ok(None) };
    let Some((fleet, key)) = app_providers::locate(connection, app, device)? else { return Ok(None) };
    let sql = "SELECT token FROM devices WHERE key = ?1 AND retired_at IS NULL";
    let present: Option<String> = one(connection, sql, [key], |row| row.get(0))?;
    // The device has had another token since, and that one holds.
    if present.as_ref() != Some(&former) || !move_token(connection, fleet, key, token, now)? {
        return Ok(None);
    }
    let sql = "INSERT INTO replaced_tokens (app, token, device, replaced_at) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (app, token) DO UPDATE SET device = excluded.device, replaced_at = excluded.replaced_at";
    run(connection, sql, params![int(app.raw()), former.as_str(), int(device.raw()), now.as_millis()])?;
    forget_older(connection, app, device, &former)?;
    Ok(Some(device))
}

/// Keeps the newest few former tokens of a device, including `last`.
fn forget_older(connection: &Connection, app: AppId, device: DeviceId, last: &str) -> Done<()> {
    let others = FORMER_TOKENS_PER_DEVICE_MAX_COUNT - 1;
    let sql = format!(
        "DELETE FROM replaced_tokens WHERE app = ?1 AND token IN (SELECT token FROM replaced_tokens
        WHERE device = ?2 AND token <> ?4 ORDER BY replaced_at DESC LIMIT {} OFFSET ?3)",
        i64::MAX
    );
    run(connection, &sql, params![int(app.raw()), int(device.raw()), limit(others), last]).map(drop)
}

/// Finds the key of the device that once had a token of the gateway; `None` where none did, or it is gone.
pub(crate) fn former_holder(
    connection: &Connection,
    fleet: AppProvider,
    token: &PushToken,
) -> Done<Option<i64>> {
    // Other push services report the state of a token themselves.
    if fleet.provider != ProviderKind::Gateway {
        return Ok(None);
    }
    let sql = "SELECT device FROM replaced_tokens WHERE app = ?1 AND token = ?2";
    let values = params![int(fleet.app.raw()), token.expose()];
    let device = one(connection, sql, values, |row| Ok(DeviceId::from_raw(number(row, 0)?)))?;
    let Some(key) = device.and_then(|device| fleet.key(device)) else { return Ok(None) };
    Ok(exists(connection, "SELECT 1 FROM devices WHERE key = ?1", [key])?.then_some(key))
}
