//! From a push token to the device that holds it: by its hash, which is a column with an index.

use std::collections::{BTreeMap, HashMap};

use stentor_core::device::{ProviderKind, PushToken};
use stentor_core::id::AppId;

use super::app_providers::{AppProvider, fleet_of};
use super::registration::token_hash;
use crate::postgres::engine::Connection;
use crate::sql::{Done, Row, all, params};

/// Hashes a token with its app and provider; a hit is always checked against the token itself.
pub(super) fn hash(app: AppId, provider: ProviderKind, token: &PushToken) -> i64 {
    token_hash(app, provider, token)
}

/// Finds the key of the device that holds the token.
pub(super) fn holder(connection: &Connection, fleet: AppProvider, token: &PushToken) -> Done<Option<i64>> {
    let sql = "SELECT key FROM devices WHERE token_hash = $1 AND token = $2";
    let values = params![hash(fleet.app, fleet.provider, token), token.expose()];
    let keys = all(connection, sql, values, |row| row.get::<i64>(0))?;
    Ok(keys.into_iter().find(|key| fleet_of(*key) == fleet.no))
}

/// Finds the keys of the devices that hold tokens, with one statement. Key i belongs to token i.
pub(super) fn holders(
    connection: &Connection,
    fleet: AppProvider,
    tokens: &[PushToken],
) -> Done<Vec<Option<i64>>> {
    let hashes = tokens.iter().map(|token| hash(fleet.app, fleet.provider, token)).collect();
    let read = |row: &Row<'_>| Ok((row.get::<String>(1)?, row.get::<i64>(0)?));
    let found = behind(connection, "d.key, d.token", hashes, read)?;
    let keys: HashMap<_, _> = found.into_iter().filter(|(_, key)| fleet_of(*key) == fleet.no).collect();
    Ok(tokens.iter().map(|token| keys.get(token.expose()).copied()).collect())
}

/// Reads the devices behind some hashes: `columns` of `devices d`.
pub(super) fn behind<T>(
    connection: &Connection,
    columns: &str,
    hashes: Vec<i64>,
    read: impl FnMut(&Row<'_>) -> Done<T>,
) -> Done<Vec<T>> {
    let sql = format!("SELECT {columns} FROM devices d WHERE d.token_hash = ANY($1)");
    all(connection, &sql, params![hashes], read)
}

/// Reads the tokens of those of some devices that are not retired, by key.
pub(super) fn of_unretired(connection: &Connection, keys: Vec<i64>) -> Done<BTreeMap<i64, String>> {
    let sql = "SELECT key, token FROM devices WHERE key = ANY($1) AND retired_at IS NULL";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    Ok(all(connection, sql, params![keys], read)?.into_iter().collect())
}
