//! What the gateway keeps of a device beside the device itself: channels of programs, tokens that it was offered, tokens that it
//! had before. Nobody asks for them once the device is gone.

use rusqlite::Connection;
use stentor_core::device::ProviderKind;

use super::app_providers::{AppProvider, device_of};
use crate::sqlite::fault::Done;
use crate::sqlite::query::run;
use crate::sqlite::row::int;

const OF_DEVICE: [&str; 3] = [
    "DELETE FROM channels WHERE device = ?1",
    "DELETE FROM offered_tokens WHERE device = ?1",
    "DELETE FROM replaced_tokens WHERE device = ?1",
];

/// Forgets what was kept of a removed device. What it has sent to its app stays: that was promised, and ends by itself.
pub(super) fn forget(connection: &Connection, provider: ProviderKind, key: i64) -> Done<()> {
    // Only devices of the gateway have any of this.
    if provider != ProviderKind::Gateway {
        return Ok(());
    }
    let device = int(device_of(key).raw());
    OF_DEVICE.iter().try_for_each(|sql| run(connection, sql, [device]).map(drop))
}

/// Forgets what was kept of a device of a removed app, with what it has sent: nobody is left to take that over.
pub(super) fn forget_with_messages(connection: &Connection, fleet: AppProvider, key: i64) -> Done<()> {
    if fleet.provider != ProviderKind::Gateway {
        return Ok(());
    }
    run(connection, "DELETE FROM upstream WHERE device = ?1", [int(device_of(key).raw())])?;
    forget(connection, fleet.provider, key)
}
