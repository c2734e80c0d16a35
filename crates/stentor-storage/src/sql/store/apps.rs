//! Apps, their API keys and their credentials.

use async_trait::async_trait;
use stentor_core::account::IssuedAccount;
use stentor_core::app::{ApiKey, App, Credential, Scopes};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, KeyId};
use stentor_core::limits::KEYS_PER_APP_MAX_COUNT;
use stentor_core::name::Label;
use stentor_core::ports::store::{AccountFilter, AppStore, KeyFilter, StoreError};

use super::{accounts, app_providers, credentials, sequences};
use crate::sql::{
    Connection, Done, Row, SqlEngine, SqlStore, found, hash, int, maybe_number, missing, number, one, params,
    readable, run, text, time, unless_repeat,
};

#[async_trait]
impl<E: SqlEngine> AppStore for SqlStore<E> {
    async fn app(&self, id: AppId) -> Result<App, StoreError> {
        self.look_up(move |connection| find(connection, id)).await
    }

    async fn apps(&self) -> Result<Vec<App>, StoreError> {
        let sql = "SELECT id, name, created_at FROM apps ORDER BY id";
        self.read(|connection| Ok(readable(connection, "apps", (sql, ()), usize::MAX, app)?.0)).await
    }

    async fn key_hashes(&self, count: usize) -> Result<Vec<[u8; 32]>, StoreError> {
        let sql = "SELECT id, hash FROM api_keys ORDER BY id";
        let read = |row: &Row<'_>| hash(row, 1);
        self.read(move |connection| Ok(readable(connection, "api_keys", (sql, ()), count, read)?.0)).await
    }

    async fn keys(&self, filter: KeyFilter) -> Result<Vec<ApiKey>, StoreError> {
        const COLUMNS: &str = "SELECT id, app, name, scopes, hash, created_at FROM api_keys";
        match filter {
            KeyFilter::App(app) => {
                let sql = format!("{COLUMNS} WHERE app = ?1 ORDER BY id");
                let id = [int(app.raw())];
                self.read_long(move |connection| {
                    Ok(readable(connection, "api_keys", (&sql, id), usize::MAX, key)?.0)
                })
                .await
            }
            KeyFilter::Hash(hash) => {
                // The key of a removed app is invalid, though its row may still exist.
                let sql =
                    format!("{COLUMNS} WHERE hash = ?1 AND (app IS NULL OR app IN (SELECT id FROM apps))");
                self.look_up(move |connection| Ok(Vec::from_iter(one(connection, &sql, [hash], key)?))).await
            }
        }
    }

    async fn accounts(&self, filter: AccountFilter) -> Result<Vec<IssuedAccount>, StoreError> {
        match filter {
            AccountFilter::App(app) => {
                self.read_long(move |connection| accounts::of_app(connection, app)).await
            }
            AccountFilter::Id(id) => {
                self.look_up(move |connection| Ok(Vec::from_iter(accounts::find(connection, id)?))).await
            }
        }
    }

    async fn credentials(&self) -> Result<Vec<Credential>, StoreError> {
        let vault = self.vault();
        self.read(move |connection| credentials::all_of(connection, &vault)).await
    }

    async fn credential(&self, app: AppId, provider: ProviderKind) -> Result<Credential, StoreError> {
        let vault = self.vault();
        self.read(move |connection| credentials::find(connection, &vault, app, provider)).await
    }

    async fn last_id(&self) -> Result<u64, StoreError> {
        self.read(|connection| last_id(connection)).await
    }
}

/// Returns an app.
pub(crate) fn find(connection: &Connection, id: AppId) -> Done<App> {
    let sql = "SELECT id, name, created_at FROM apps WHERE id = ?1";
    one(connection, sql, [int(id.raw())], app)?.ok_or(missing("app"))
}

/// Stores an app.
pub(crate) fn create_app(connection: &Connection, app: &App) -> Done<()> {
    let sql = "INSERT INTO apps (id, name, created_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    let values = params![int(app.id.raw()), app.name.as_str(), app.created_at.as_millis()];
    run(connection, sql, values).and_then(|inserted| unless_repeat(inserted, "the app id is in use"))
}

/// Stores a key.
pub(crate) fn create_key(connection: &Connection, key: &ApiKey) -> Done<()> {
    if let Some(app) = key.app {
        app_providers::check_app(connection, app)?;
        check_key_count(connection, app)?;
    }
    let sql = "INSERT INTO api_keys (id, app, name, scopes, hash, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT DO NOTHING";
    let app = key.app.map(|app| int(app.raw()));
    let (id, name, scopes) = (int(key.id.raw()), key.name.as_str(), key.scopes.bits());
    let done = run(connection, sql, params![id, app, name, scopes, key.hash, key.created_at.as_millis()]);
    done.and_then(|inserted| unless_repeat(inserted, "the key is in use"))
}

/// Refuses one key more than an app may have.
fn check_key_count(connection: &Connection, app: AppId) -> Done<()> {
    let sql = "SELECT count(*) FROM api_keys WHERE app = ?1";
    let known = one(connection, sql, [int(app.raw())], |row| number(row, 0))?.unwrap_or(0);
    if known < KEYS_PER_APP_MAX_COUNT as u64 {
        return Ok(());
    }
    Err(StoreError::LimitReached(format!("an app has at most {KEYS_PER_APP_MAX_COUNT} keys")).into())
}

/// Removes a key of an app.
pub(crate) fn delete_key(connection: &Connection, app: AppId, key: KeyId) -> Done<()> {
    // The largest id ever issued is stored, so that no start issues the id of a deleted row again.
    sequences::advance(connection, "id", key.raw())?;
    let sql = "DELETE FROM api_keys WHERE app = ?1 AND id = ?2";
    found(run(connection, sql, [int(app.raw()), int(key.raw())])?, "key")
}

/// Removes a credential.
pub(crate) fn delete_credential(connection: &Connection, app: AppId, provider: ProviderKind) -> Done<()> {
    let sql = "DELETE FROM credentials WHERE app = ?1 AND provider = ?2";
    found(run(connection, sql, params![int(app.raw()), provider.code()])?, "credential")
}

/// Stores a credential with a sealed secret.
pub(crate) fn put_credential(connection: &Connection, sealed: &Credential) -> Done<()> {
    app_providers::check_app(connection, sealed.app)?;
    let sql = "INSERT INTO credentials (app, provider, secret, updated_at) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (app, provider) DO UPDATE SET secret = excluded.secret, updated_at = excluded.updated_at";
    let (app, provider) = (int(sealed.app.raw()), sealed.provider.code());
    run(connection, sql, params![app, provider, sealed.secret.as_str(), sealed.updated_at.as_millis()])
        .map(drop)
}

/// Returns the largest number in use. Removed rows have left the largest of their ids in `sequences`.
pub(crate) fn last_id(connection: &Connection) -> Done<u64> {
    let greatest = connection.dialect().greatest;
    let sql = format!(
        "SELECT {greatest}(
        coalesce((SELECT max(id) FROM apps), 0), coalesce((SELECT max(id) FROM api_keys), 0),
        coalesce((SELECT max(id) FROM accounts), 0),
        coalesce((SELECT max(id) FROM messages), 0), coalesce((SELECT max(id) FROM schedules), 0),
        coalesce((SELECT max(id) FROM proposals), 0),
        coalesce((SELECT value FROM sequences WHERE name = 'id'), 0))"
    );
    Ok(one(connection, &sql, (), |row| number(row, 0))?.unwrap_or(0))
}

fn app(row: &Row<'_>) -> Done<App> {
    Ok(App {
        id: AppId::from_raw(number(row, 0)?),
        name: text(row, 1, Label::new)?,
        created_at: time(row, 2)?,
    })
}

fn key(row: &Row<'_>) -> Done<ApiKey> {
    Ok(ApiKey {
        id: KeyId::from_raw(number(row, 0)?),
        app: maybe_number(row, 1)?.map(AppId::from_raw),
        name: text(row, 2, Label::new)?,
        scopes: Scopes::from_bits(row.get(3)?),
        hash: hash(row, 4)?,
        created_at: time(row, 5)?,
    })
}
