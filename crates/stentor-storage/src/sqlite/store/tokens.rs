//! From a push token to the device that holds it.

use rusqlite::{Connection, params};
use stentor_core::device::{ProviderKind, PushToken};
use stentor_core::id::AppId;

use super::fleets::{Fleet, fleet_of};
use crate::sqlite::fault::{Done, damaged};
use crate::sqlite::query::run;

/// Hashes a token with its app and provider to 64 bits; a hit is always checked against the token itself.
pub(super) fn hash(app: AppId, provider: ProviderKind, token: &PushToken) -> i64 {
    let text = token.expose().as_bytes();
    let mut bytes = Vec::with_capacity(9 + text.len());
    bytes.extend_from_slice(&app.raw().to_le_bytes());
    bytes.push(provider.code());
    bytes.extend_from_slice(text);
    let digest = blake3::hash(&bytes);
    digest.as_bytes().first_chunk().map_or(0, |first| i64::from_le_bytes(*first))
}

/// Finds the key of the device that holds the token.
pub(super) fn holder(connection: &Connection, fleet: Fleet, token: &PushToken) -> Done<Option<i64>> {
    holder_by_hash(connection, fleet, hash(fleet.app, fleet.provider, token), token)
}

/// Finds the key of the device that holds the token, its hash being known.
pub(super) fn holder_by_hash(
    connection: &Connection,
    fleet: Fleet,
    hash: i64,
    token: &PushToken,
) -> Done<Option<i64>> {
    let mut candidates = connection.prepare_cached("SELECT key FROM token_hashes WHERE hash = ?1")?;
    let mut rows = candidates.query([hash])?;
    while let Some(row) = rows.next()? {
        let key: i64 = row.get(0)?;
        if fleet_of(key) == fleet.no && holds(connection, key, token)? {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

/// Notes who holds a token.
pub(super) fn note(connection: &Connection, hash: i64, key: i64) -> Done<()> {
    run(connection, "INSERT INTO token_hashes (hash, key) VALUES (?1, ?2)", params![hash, key]).map(drop)
}

/// Forgets who held a token.
pub(super) fn forget(connection: &Connection, hash: i64, key: i64) -> Done<()> {
    run(connection, "DELETE FROM token_hashes WHERE hash = ?1 AND key = ?2", params![hash, key]).map(drop)
}

fn holds(connection: &Connection, key: i64, token: &PushToken) -> Done<bool> {
    let mut statement = connection.prepare_cached("SELECT token FROM devices WHERE key = ?1")?;
    let mut rows = statement.query([key])?;
    let Some(row) = rows.next()? else { return Ok(false) };
    let kept = row.get_ref(0)?.as_str().map_err(|_| damaged("a token that is no text"))?;
    Ok(kept == token.expose())
}
