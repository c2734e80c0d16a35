//! The registry of published services.

use async_trait::async_trait;
use stentor_core::id::AppId;
use stentor_core::limits::SERVICES_PER_APP_MAX_COUNT;
use stentor_core::name::{ServiceAddress, ServiceKind, ServiceName, ServiceText};
use stentor_core::ports::store::{RegistryStore, StoreError};
use stentor_core::published::PublishedService;
use stentor_core::time::Timestamp;

use super::app_providers;
use crate::sql::{
    Connection, Done, Row, SqlEngine, SqlStore, found, int, maybe_text, missing, number, one, params,
    readable, run, text, time,
};

const COLUMNS: &str = "name, kind, address, description, published_at, expires_at";

#[async_trait]
impl<E: SqlEngine> RegistryStore for SqlStore<E> {
    async fn put_service(
        &self,
        service: &PublishedService,
        now: Timestamp,
    ) -> Result<PublishedService, StoreError> {
        let service = service.clone();
        self.write_registry(move |connection| put(connection, &service, now)).await
    }

    async fn service(
        &self,
        app: AppId,
        name: &ServiceName,
        now: Timestamp,
    ) -> Result<PublishedService, StoreError> {
        let name = name.clone();
        self.read(move |connection| show(connection, app, &name, now)).await
    }

    async fn services(
        &self,
        app: AppId,
        kind: Option<&ServiceKind>,
        after: Option<&ServiceName>,
        now: Timestamp,
        count: usize,
    ) -> Result<Vec<PublishedService>, StoreError> {
        let after = after.map_or(String::new(), |name| name.as_str().to_owned());
        let kind = kind.map(|kind| kind.as_str().to_owned());
        self.read(move |connection| {
            let sql = format!(
                "SELECT {COLUMNS} FROM services WHERE app = ?1 AND name > ?2 AND expires_at > ?3
                 AND (CAST(?4 AS TEXT) IS NULL OR kind = ?4) ORDER BY name"
            );
            let rows =
                (sql.as_str(), params![int(app.raw()), after.as_str(), now.as_millis(), kind.as_deref()]);
            Ok(readable(connection, "services", rows, count, |row| read(row, app))?.0)
        })
        .await
    }
}

/// Removes a service that has not expired.
pub(crate) fn remove(connection: &Connection, app: AppId, name: &ServiceName, now: Timestamp) -> Done<()> {
    let sql = "DELETE FROM services WHERE app = ?1 AND name = ?2 AND expires_at > ?3";
    found(run(connection, sql, params![int(app.raw()), name.as_str(), now.as_millis()])?, "service")
}

/// Stores a service; expired services of the app make room first.
fn put(connection: &Connection, service: &PublishedService, now: Timestamp) -> Done<PublishedService> {
    let app = int(service.app.raw());
    app_providers::check_app(connection, service.app)?;
    run(
        connection,
        "DELETE FROM services WHERE app = ?1 AND expires_at <= ?2",
        params![app, now.as_millis()],
    )?;
    // An existing service may be renewed even if there is no room for another.
    let others = "SELECT count(*) FROM services WHERE app = ?1 AND name <> ?2";
    let others = one(connection, others, params![app, service.name.as_str()], |row| number(row, 0))?;
    if others.unwrap_or(0) >= SERVICES_PER_APP_MAX_COUNT as u64 {
        let why = format!("an app has at most {SERVICES_PER_APP_MAX_COUNT} services");
        return Err(StoreError::LimitReached(why).into());
    }
    let sql = "INSERT INTO services (app, name, kind, address, description, published_at, expires_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
        ON CONFLICT (app, name) DO UPDATE SET kind = excluded.kind, address = excluded.address,
        description = excluded.description, expires_at = excluded.expires_at";
    let values = params![
        app,
        service.name.as_str(),
        service.kind.as_str(),
        service.address.as_str(),
        service.description.as_ref().map(ServiceText::as_str),
        service.published_at.as_millis(),
        service.expires_at.as_millis(),
    ];
    run(connection, sql, values)?;
    show(connection, service.app, &service.name, now)
}

fn show(connection: &Connection, app: AppId, name: &ServiceName, now: Timestamp) -> Done<PublishedService> {
    let sql = format!("SELECT {COLUMNS} FROM services WHERE app = ?1 AND name = ?2 AND expires_at > ?3");
    let key = params![int(app.raw()), name.as_str(), now.as_millis()];
    one(connection, &sql, key, |row| read(row, app))?.ok_or(missing("service"))
}

fn read(row: &Row<'_>, app: AppId) -> Done<PublishedService> {
    Ok(PublishedService {
        app,
        name: text(row, 0, ServiceName::new)?,
        kind: text(row, 1, ServiceKind::new)?,
        address: text(row, 2, ServiceAddress::new)?,
        description: maybe_text(row, 3, ServiceText::new)?,
        published_at: time(row, 4)?,
        expires_at: time(row, 5)?,
    })
}
