//! Webhooks for the messages of devices.

use stentor_core::id::AppId;
use stentor_core::upstream::UpstreamWebhook;

use super::app_providers;
use crate::sql::{
    Connection, Done, Row, found, int, missing, number, one, params, readable, run, text, time,
};
use crate::vault::Vault;

const SELECT: &str = "SELECT app, secret, updated_at FROM upstream_webhooks";

/// Stores a sealed webhook.
pub(crate) fn put(connection: &Connection, sealed: &UpstreamWebhook) -> Done<()> {
    app_providers::check_app(connection, sealed.app)?;
    let sql = "INSERT INTO upstream_webhooks (app, secret, updated_at) VALUES (?1, ?2, ?3)
        ON CONFLICT (app) DO UPDATE SET secret = excluded.secret, updated_at = excluded.updated_at";
    let values = params![int(sealed.app.raw()), &sealed.secret, sealed.updated_at.as_millis()];
    run(connection, sql, values).map(drop)
}

/// Removes an app's webhook.
pub(crate) fn delete(connection: &Connection, app: AppId) -> Done<()> {
    let sql = "DELETE FROM upstream_webhooks WHERE app = ?1";
    found(run(connection, sql, [int(app.raw())])?, "webhook")
}

/// Reads an app's webhook.
pub(crate) fn of_app(connection: &Connection, vault: &Vault, app: AppId) -> Done<UpstreamWebhook> {
    let found = one(connection, &format!("{SELECT} WHERE app = ?1"), [int(app.raw())], read)?;
    Ok(vault.open_webhook(found.ok_or(missing("webhook"))?)?)
}

/// Reads all webhooks. Those that cannot be opened are logged, and do not affect the others.
pub(crate) fn all(connection: &Connection, vault: &Vault) -> Done<Vec<UpstreamWebhook>> {
    let sql = format!("{SELECT} ORDER BY app");
    let open = |row: &Row<'_>| Ok(vault.open_webhook(read(row)?)?);
    Ok(readable(connection, "upstream_webhooks", (&sql, ()), usize::MAX, open)?.0)
}

fn read(row: &Row<'_>) -> Done<UpstreamWebhook> {
    Ok(UpstreamWebhook {
        app: AppId::from_raw(number(row, 0)?),
        url: String::new(),
        secret: text(row, 1, Ok)?,
        updated_at: time(row, 2)?,
        former: None,
    })
}
