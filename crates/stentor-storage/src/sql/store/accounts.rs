//! Accounts that sign for themselves.

use stentor_core::account::IssuedAccount;
use stentor_core::app::Scopes;
use stentor_core::id::{AppId, KeyId};
use stentor_core::limits::ACCOUNTS_PER_APP_MAX_COUNT;
use stentor_core::name::Label;
use stentor_core::ports::store::StoreError;

use super::{app_providers, sequences};
use crate::sql::{
    Connection, Done, Row, found, int, number, one, params, readable, run, text, time, unless_repeat,
};

/// Stores an account, if its app has room for it.
pub(crate) fn create(connection: &Connection, account: &IssuedAccount) -> Done<()> {
    app_providers::check_app(connection, account.app)?;
    check_count(connection, account.app)?;
    let sql = "INSERT INTO accounts (id, app, name, scopes, public_key, token_uri, created_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING";
    let (id, app) = (int(account.id.raw()), int(account.app.raw()));
    let (name, scopes, key) = (account.name.as_str(), account.scopes.bits(), &account.public_key);
    let values = params![id, app, name, scopes, key, &account.token_uri, account.created_at.as_millis()];
    run(connection, sql, values).and_then(|inserted| unless_repeat(inserted, "the account is in use"))
}

/// Refuses one account more than an app may have.
fn check_count(connection: &Connection, app: AppId) -> Done<()> {
    let sql = "SELECT count(*) FROM accounts WHERE app = ?1";
    let known = one(connection, sql, [int(app.raw())], |row| number(row, 0))?.unwrap_or(0);
    if known < ACCOUNTS_PER_APP_MAX_COUNT as u64 {
        return Ok(());
    }
    let why = format!("an app has at most {ACCOUNTS_PER_APP_MAX_COUNT} service accounts");
    Err(StoreError::LimitReached(why).into())
}

/// Removes an account of an app.
pub(crate) fn delete(connection: &Connection, app: AppId, id: KeyId) -> Done<()> {
    // The largest id ever issued is stored, so that no start issues the id of a deleted row again.
    sequences::advance(connection, "id", id.raw())?;
    let sql = "DELETE FROM accounts WHERE app = ?1 AND id = ?2";
    found(run(connection, sql, [int(app.raw()), int(id.raw())])?, "account")
}

/// Finds an account, if its app exists.
pub(crate) fn find(connection: &Connection, id: KeyId) -> Done<Option<IssuedAccount>> {
    // An app that is removed has no row, while the rows of its accounts may still wait for their removal.
    let sql = "SELECT id, app, name, scopes, public_key, token_uri, created_at FROM accounts
        WHERE id = ?1 AND app IN (SELECT id FROM apps)";
    one(connection, sql, [int(id.raw())], account)
}

/// Lists an app's accounts in order of id.
pub(crate) fn of_app(connection: &Connection, app: AppId) -> Done<Vec<IssuedAccount>> {
    let sql = "SELECT id, app, name, scopes, public_key, token_uri, created_at FROM accounts
        WHERE app = ?1 ORDER BY id";
    Ok(readable(connection, "accounts", (sql, [int(app.raw())]), usize::MAX, account)?.0)
}

fn account(row: &Row<'_>) -> Done<IssuedAccount> {
    Ok(IssuedAccount {
        id: KeyId::from_raw(number(row, 0)?),
        app: AppId::from_raw(number(row, 1)?),
        name: text(row, 2, Label::new)?,
        scopes: Scopes::from_bits(row.get(3)?),
        public_key: row.get(4)?,
        token_uri: row.get(5)?,
        created_at: time(row, 6)?,
    })
}
