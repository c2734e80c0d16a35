//! Tokens of copied devices, which engines find by a hash.

use stentor_core::device::PushToken;

use super::{TransferRow, TransferValue};
use crate::sql::store::app_providers::{AppProvider, FleetCache, fleet_of};
use crate::sql::{Connection, Done, damaged};

/// The token of a device.
pub(crate) struct DeviceToken {
    pub(crate) key: i64,
    pub(crate) fleet: AppProvider,
    pub(crate) token: PushToken,
}

/// Returns the token of each device among the rows of its table.
pub(crate) fn device_tokens(
    connection: &Connection,
    columns: &[&str],
    rows: &[TransferRow],
) -> Done<Vec<DeviceToken>> {
    let place = |name: &str| columns.iter().position(|column| *column == name);
    let (key_at, token_at) = (place("key"), place("token"));
    let fleets = FleetCache::default();
    let read = |row: &TransferRow| {
        let (Some(TransferValue::Int(key)), Some(TransferValue::Text(token))) =
            (key_at.and_then(|at| row.get(at)), token_at.and_then(|at| row.get(at)))
        else {
            return Err(damaged("a device without a key or a token"));
        };
        let token = PushToken::new(token.clone()).map_err(|_| damaged("a token that no device can have"))?;
        Ok(DeviceToken { key: *key, fleet: fleets.by_no(connection, fleet_of(*key))?, token })
    };
    rows.iter().map(read).collect()
}
