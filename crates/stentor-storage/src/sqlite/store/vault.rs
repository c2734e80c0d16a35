//! Credentials and webhooks as they lie in the file: their secrets are sealed on the way in and opened on the way out.

use std::collections::BTreeMap;

use rusqlite::Connection;
use stentor_core::ports::store::StoreError;

use crate::seal::{SealKeyId, SealKeys, SealedPlace, SecretForm, kept};
use crate::sql::{Done, Row, all, conflict, exists, limit, params, run};
use crate::vault::{Vault, credential_place, sealed_anew, webhook_place};

/// The largest number of rows that one transaction seals again.
const ADOPTED_MAX_COUNT: usize = 256;

impl Vault {
    /// Refuses a file with a row sealed under an unknown key.
    pub(super) fn check_file(&self, connection: &Connection) -> Done<()> {
        Ok(self.check(sealed_under(connection)?.keys())?)
    }

    /// Seals secrets that are in clear or under a former key, and then rewrites the file, so that no former secret is left between its rows
    /// or in its log. An interruption is harmless: the next start continues.
    pub(super) fn adopt(&self, connection: &Connection) -> Done<()> {
        let Some(keys) = self.keys() else { return Ok(()) };
        let mut count = 0;
        for table in &TABLES {
            let mut after = Some((i64::MIN, -1));
            while let Some(name) = after {
                let transaction = connection.unchecked_transaction()?;
                let (next, sealed) = adopt_some(&transaction, keys, table, name)?;
                transaction.commit()?;
                (after, count) = (next, count + sealed);
            }
        }
        if count > 0 {
            tracing::info!(count, key = %keys.present(), "secrets were sealed");
        }
        if exists(connection, "SELECT 1 FROM scrubs WHERE due <> 0", ())? {
            scrub(connection);
        }
        Ok(())
    }
}

/// Counts the rows under each key, without torn ones; a file of an earlier version has none.
pub(in crate::sqlite) fn sealed_under(connection: &Connection) -> Done<BTreeMap<SealKeyId, u64>> {
    let mut counts = BTreeMap::new();
    for table in &TABLES {
        if !exists(connection, "SELECT 1 FROM sqlite_schema WHERE name = ?1", [table.name])? {
            continue;
        }
        let sql = format!("SELECT secret FROM {}", table.name);
        for state in all(connection, &sql, (), |row| Ok(text(row, 0).map_or(SecretForm::Torn, kept)))? {
            if let SecretForm::Sealed(id) = state {
                *counts.entry(id).or_default() += 1;
            }
        }
    }
    Ok(counts)
}

/// The key of a row, in the order of the table.
type Name = (i64, i64);

/// A table with a sealed column `secret`.
struct SealedTable {
    name: &'static str,
    /// Reads the rows after one.
    select: &'static str,
    /// Sets the secret of one.
    update: &'static str,
    place: fn(Name) -> Option<SealedPlace>,
}

const TABLES: [SealedTable; 2] = [
    SealedTable {
        name: "credentials",
        select: "SELECT app, provider, secret FROM credentials WHERE (app, provider) > (?1, ?2)
            ORDER BY app, provider LIMIT ?3",
        update: "UPDATE credentials SET secret = ?3 WHERE app = ?1 AND provider = ?2",
        place: credential_place,
    },
    SealedTable {
        name: "upstream_webhooks",
        select: "SELECT app, 0, secret FROM upstream_webhooks WHERE (app, 0) > (?1, ?2) ORDER BY app LIMIT ?3",
        update: "UPDATE upstream_webhooks SET secret = ?3 WHERE app = ?1 AND ?2 = 0",
        place: |(app, _)| webhook_place(app),
    },
];

/// Seals some rows; returns the last of them if there may be more, and the number of sealed ones.
fn adopt_some(
    connection: &Connection,
    keys: &SealKeys,
    table: &SealedTable,
    after: Name,
) -> Done<(Option<Name>, u64)> {
    let read = |row: &Row<'_>| Ok(((row.get(0)?, row.get(1)?), text(row, 2).unwrap_or_default().to_owned()));
    let some = params![after.0, after.1, limit(ADOPTED_MAX_COUNT)];
    let rows: Vec<(Name, String)> = all(connection, table.select, some, read)?;
    let mut count = 0;
    for (name, record) in &rows {
        if let Some(sealed) = sealed_anew(keys, (table.place)(*name), record) {
            run(connection, table.update, params![name.0, name.1, sealed])?;
            count += 1;
        }
    }
    if count > 0 {
        // In the sealing transaction, so that a kill before the file is rewritten does not lose the mark.
        run(connection, "UPDATE scrubs SET due = 1", ())?;
    }
    Ok((rows.last().filter(|_| rows.len() == ADOPTED_MAX_COUNT).map(|(name, _)| *name), count))
}

/// Rewrites the file and empties the log, because free pages, and gaps in other pages, contain former data. Without room for the copy the
/// file stays as it is, and the next start tries again.
fn scrub(connection: &Connection) {
    tracing::info!(
        "the database is written anew, so that no old secret is left in it; this may take a while"
    );
    if let Err(fault) = scrubbed(connection) {
        let error = StoreError::from(fault);
        tracing::warn!(%error, "old secrets may be left in the database's free space: the next start tries again");
    }
}

fn scrubbed(connection: &Connection) -> Done<()> {
    // The copy of a large file does not belong in memory.
    connection.pragma_update(None, "temp_store", "FILE")?;
    let done = connection.execute_batch("VACUUM");
    // Before the failure is returned: the connection is used for writing after it.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    done?;
    // The pragma returns a row, which reports a concurrent reader.
    let busy: i64 = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy != 0 {
        return Err(conflict("somebody reads the write-ahead log"));
    }
    // The log may have held it as well: only now nothing is left.
    run(connection, "UPDATE scrubs SET due = 0", ()).map(drop)
}

fn text<'row>(row: &'row Row<'_>, at: usize) -> Option<&'row str> {
    row.maybe_str(at).ok().flatten()
}

#[cfg(test)]
mod tests;
