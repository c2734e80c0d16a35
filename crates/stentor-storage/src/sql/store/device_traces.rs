//! What the gateway keeps of a device beside the device itself: channels of programs, tokens that it was offered, tokens that it
//! had before. Nobody asks for them once the device is gone.

use stentor_core::device::ProviderKind;

use super::app_providers::device_of;
use crate::sql::{Connection, Done, int, params, run};

const TABLES: [&str; 3] = ["channels", "offered_tokens", "replaced_tokens"];

/// Forgets what was kept of removed devices. What they have sent to their app stays: that was promised, and ends by itself.
pub(crate) fn forget(connection: &Connection, provider: ProviderKind, keys: &[i64]) -> Done<()> {
    // Only devices of the gateway have any of this.
    if provider != ProviderKind::Gateway {
        return Ok(());
    }
    TABLES.iter().try_for_each(|table| delete(connection, table, keys))
}

/// Forgets what was kept of devices of a removed app, with what they have sent: nobody is left to take that over.
pub(crate) fn forget_with_messages(
    connection: &Connection,
    provider: ProviderKind,
    keys: &[i64],
) -> Done<()> {
    if provider != ProviderKind::Gateway {
        return Ok(());
    }
    delete(connection, "upstream", keys)?;
    forget(connection, provider, keys)
}

fn delete(connection: &Connection, table: &str, keys: &[i64]) -> Done<()> {
    let devices: Vec<i64> = keys.iter().map(|key| int(device_of(*key).raw())).collect();
    let sql = format!("DELETE FROM {table} WHERE {}", connection.dialect().is_in("device", 1));
    run(connection, &sql, params![devices]).map(drop)
}
