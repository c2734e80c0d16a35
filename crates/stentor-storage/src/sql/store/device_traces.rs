//! Data that the gateway stores about a device in other tables: channels of programs, offered tokens, former tokens. It is of no use once
//! the device is gone.

use stentor_core::device::ProviderKind;

use super::app_providers::device_of;
use crate::sql::{Connection, Done, int, params, run};

const TABLES: [&str; 3] = ["channels", "offered_tokens", "replaced_tokens"];

/// Deletes the traces of removed devices. The messages that they have sent to their app stay: their delivery was promised, and they expire
/// by themselves.
pub(crate) fn forget(connection: &Connection, provider: ProviderKind, keys: &[i64]) -> Done<()> {
    // Only devices of the gateway have any of this.
    if provider != ProviderKind::Gateway {
        return Ok(());
    }
    TABLES.iter().try_for_each(|table| delete(connection, table, keys))
}

/// Deletes the traces of devices of a removed app, and the messages that they have sent, which have no recipient any more.
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
