//! Permission to register MCS clients: with a key of the app, or without one if the app is open.

use std::sync::Arc;

use async_trait::async_trait;
use stentor_core::id::{AppId, KeyId};
use stentor_core::ports::store::StoreError;
use stentor_gateway::Gateway;
use stentor_gateway::autopush::OpenApps;
use stentor_gateway::mcs::McsRegistrar;
use stentor_wire::web_push::VapidKey;

use crate::contract::{ErrorCode, Origin, ServiceResult};
use crate::face::Api;

/// Decides by API keys with the scope `join`, and by the settings of an app's gateway credential.
pub(super) struct KeyRegistrar {
    api: Api,
    gateway: Gateway,
    open_apps: OpenApps,
}

impl KeyRegistrar {
    pub(super) fn new(api: Api, gateway: &Gateway) -> Self {
        let open_apps = OpenApps::new(Arc::clone(gateway.store()) as _);
        Self { api, gateway: gateway.clone(), open_apps }
    }

    async fn admit(&self, app: AppId, key: &str) -> ServiceResult<Option<KeyId>> {
        let service = self.api.service();
        let caller = service.identify(key).await?.on(app)?;
        service.admit_device(caller, Origin::default()).await?;
        // Only a key of the app: registrations made with it end with it. The operator's key has no such end.
        Ok(caller.key())
    }
}

/// Returns `other` if the refusal is about the caller. Fails if the server cannot decide now, or if the rate limit is exceeded.
fn unless_unknown<T>(result: ServiceResult<T>, other: T) -> Result<T, StoreError> {
    result.or_else(|problem| match problem.code {
        // An unavailable answer is no refusal: the client will retry.
        ErrorCode::Unavailable => Err(StoreError::Unavailable(problem.detail.into_owned())),
        ErrorCode::RateLimited => Err(StoreError::LimitReached(problem.detail.into_owned())),
        _ => Ok(other),
    })
}

#[async_trait]
impl McsRegistrar for KeyRegistrar {
    async fn key_of(&self, app: AppId, key: &str) -> Result<Option<KeyId>, StoreError> {
        unless_unknown(self.admit(app, key).await, None)
    }

    async fn may_register(&self, app: AppId, installed_with: Option<KeyId>) -> Result<bool, StoreError> {
        let service = self.api.service();
        let may = match installed_with {
            Some(key) => unless_unknown(service.may_join_still(app, key).await, false)?,
            None => self.open_apps.is_open(app).await?,
        };
        Ok(may && unless_unknown(service.count_join(app).map(|()| true), false)?)
    }

    /// Returns the app that has named this sender's key, if the app is open. Chromium registers a page for the key of its sender.
    async fn app_of_server_key(&self, key: &str) -> Result<Option<AppId>, StoreError> {
        let Some(key) = VapidKey::read(key) else { return Ok(None) };
        let Some(app) = self.open_apps.app_of(&key, self.gateway.clock().now()).await? else {
            return Ok(None);
        };
        if !self.open_apps.is_open(app).await? {
            return Ok(None);
        }
        unless_unknown(self.api.service().count_join(app), ())?;
        Ok(Some(app))
    }
}
