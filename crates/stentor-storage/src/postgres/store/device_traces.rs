//! What the gateway keeps of a device beside the device itself: channels of programs, tokens that it was offered, tokens that it
//! had before. Nobody asks for them once the device is gone.

use stentor_core::device::ProviderKind;

use super::app_providers::device_of;
use crate::postgres::engine::{Connection, params};
use crate::postgres::fault::Done;
use crate::postgres::query::run;
use crate::postgres::row::int;

const OF_DEVICES: [&str; 3] = [
    "DELETE FROM channels WHERE device = ANY($1)",
    "DELETE FROM offered_tokens WHERE device = ANY($1)",
    "DELETE FROM replaced_tokens WHERE device = ANY($1)",
];

/// Forgets what was kept of removed devices. What they have sent to their app stays: that was promised, and ends by itself.
pub(super) fn forget(connection: &Connection, provider: ProviderKind, keys: &[i64]) -> Done<()> {
    // Only devices of the gateway have any of this.
    if provider != ProviderKind::Gateway {
        return Ok(());
    }
    let devices = devices_of(keys);
    OF_DEVICES.iter().try_for_each(|sql| run(connection, sql, params![devices.clone()]).map(drop))
}

/// Forgets what was kept of devices of a removed app, with what they have sent: nobody is left to take that over.
pub(super) fn forget_with_messages(
    connection: &Connection,
    provider: ProviderKind,
    keys: &[i64],
) -> Done<()> {
    if provider != ProviderKind::Gateway {
        return Ok(());
    }
    run(connection, "DELETE FROM upstream WHERE device = ANY($1)", params![devices_of(keys)])?;
    forget(connection, provider, keys)
}

fn devices_of(keys: &[i64]) -> Vec<i64> {
    keys.iter().map(|key| int(device_of(*key).raw())).collect()
}
