//! Sealing of secrets that are stored in clear or under a former key.

use std::collections::BTreeMap;

use crate::postgres::engine::Connection;
use crate::seal::{SealKeyId, SecretForm, kept};
use crate::sql::{Done, Row, all, exists, params, run};
use crate::vault::{Vault, credential_place, sealed_anew, webhook_place};

/// Refuses a database with a row sealed under an unknown key; then seals secrets that are in clear or under a former key. Their former
/// values stay in the server's files until it reuses their pages.
pub(super) fn adopt(connection: &Connection, vault: &Vault) -> Done<()> {
    vault.check(sealed_under(connection)?.keys())?;
    let Some(keys) = vault.keys() else { return Ok(()) };
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get::<String>(2)?));
    let rows: Vec<(i64, i64, String)> =
        all(connection, "SELECT app, provider, secret FROM credentials", (), read)?;
    let mut count = 0;
    for (app, provider, record) in rows {
        if let Some(sealed) = sealed_anew(keys, credential_place((app, provider)), &record) {
            // Another process may have replaced it in between.
            let sql = "UPDATE credentials SET secret = $3 WHERE app = $1 AND provider = $2 AND secret = $4";
            count += run(connection, sql, params![app, provider, sealed, record])?;
        }
    }
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get::<String>(1)?));
    let rows: Vec<(i64, String)> = all(connection, "SELECT app, secret FROM upstream_webhooks", (), read)?;
    for (app, record) in rows {
        if let Some(sealed) = sealed_anew(keys, webhook_place(app), &record) {
            let sql = "UPDATE upstream_webhooks SET secret = $2 WHERE app = $1 AND secret = $3";
            count += run(connection, sql, params![app, sealed, record])?;
        }
    }
    if count > 0 {
        tracing::info!(count, key = %keys.present(), "secrets were sealed");
    }
    Ok(())
}

/// Counts the rows under each key; a database without a schema has none.
pub(super) fn sealed_under(connection: &Connection) -> Done<BTreeMap<SealKeyId, u64>> {
    let mut counts = BTreeMap::new();
    for table in ["credentials", "upstream_webhooks"] {
        if !exists(connection, "SELECT 1 WHERE to_regclass($1) IS NOT NULL", [table])? {
            continue;
        }
        let sql = format!("SELECT secret FROM {table}");
        for secret in all(connection, &sql, (), |row| row.get::<String>(0))? {
            if let SecretForm::Sealed(id) = kept(&secret) {
                *counts.entry(id).or_default() += 1;
            }
        }
    }
    Ok(counts)
}
