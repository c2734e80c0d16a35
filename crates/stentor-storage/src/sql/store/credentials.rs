//! Rows of credentials, opened by the vault.

use stentor_core::app::Credential;
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;

use crate::sql::{Connection, Done, Row, code, int, missing, number, one, params, readable, time};
use crate::vault::Vault;

/// Reads one credential.
pub(crate) fn find(
    connection: &Connection,
    vault: &Vault,
    app: AppId,
    provider: ProviderKind,
) -> Done<Credential> {
    let sql = "SELECT app, provider, secret, updated_at FROM credentials WHERE app = ?1 AND provider = ?2";
    let found = one(connection, sql, params![int(app.raw()), provider.code()], |row| read(row, 0))?;
    Ok(vault.open(found.ok_or(missing("credential"))?)?)
}

/// Reads all credentials. Those that cannot be opened are logged, and do not affect the others.
pub(crate) fn all_of(connection: &Connection, vault: &Vault) -> Done<Vec<Credential>> {
    // The first column is one number for each row, by which a damaged row is logged once.
    let sql = "SELECT app << 8 | provider, app, provider, secret, updated_at FROM credentials ORDER BY app, provider";
    let open = |row: &Row<'_>| Ok(vault.open(read(row, 1)?)?);
    Ok(readable(connection, "credentials", (sql, ()), usize::MAX, open)?.0)
}

/// Reads a credential from the columns beginning at `first`.
fn read(row: &Row<'_>, first: usize) -> Done<Credential> {
    Ok(Credential {
        app: AppId::from_raw(number(row, first)?),
        provider: code(row, first + 1, ProviderKind::from_code)?,
        secret: row.get(first + 2)?,
        updated_at: time(row, first + 3)?,
    })
}
