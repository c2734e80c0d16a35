//! Who may register programs of MCS: whoever has a key of the app for it, and anybody where the app says so.

use std::sync::Arc;

use async_trait::async_trait;
use stentor_core::id::AppId;
use stentor_core::ports::store::StoreError;
use stentor_gateway::Gateway;
use stentor_gateway::autopush::OpenApps;
use stentor_gateway::mcs::McsRegistrar;
use stentor_gateway::web_push::VapidKey;

use crate::contract::{ErrorCode, Origin, Problem, ServiceResult};
use crate::face::Api;

/// Decides by API keys with the scope `join`, and by what an app's gateway credential says.
pub(super) struct KeyRegistrar {
    api: Api,
    gateway: Gateway,
    open_apps: OpenApps,
}

impl KeyRegistrar {
    pub(super) fn new(api: Api, gateway: &Gateway) -> Self {
        let open_apps = OpenApps::new(Arc::clone(gateway.store()));
        Self { api, gateway: gateway.clone(), open_apps }
    }

    async fn allow(&self, app: AppId, key: &str) -> ServiceResult<()> {
        let service = self.api.service();
        let caller = service.identify(key).await?.on(app)?;
        service.admit_device(caller, Origin::default()).await
    }
}

#[async_trait]
impl McsRegistrar for KeyRegistrar {
    async fn may_register(&self, app: AppId, key: Option<&str>) -> Result<bool, StoreError> {
        let allowed = match key {
            Some(key) => match self.allow(app, key).await {
                Ok(()) => true,
                // What cannot be told now is no refusal: the program comes again.
                Err(problem) if problem.code == ErrorCode::Unavailable => {
                    return Err(StoreError::Unavailable(problem.detail.into_owned()));
                }
                Err(_) => false,
            },
            None => self.open_apps.is_open(app).await? && self.api.service().count_join(app).is_ok(),
        };
        Ok(allowed)
    }

    /// Chromium registers a page for the key of who sends to it: the app that has named the key is meant, where it is open.
    async fn app_of_server_key(&self, key: &str) -> Result<Option<AppId>, StoreError> {
        let Some(key) = VapidKey::read(key) else { return Ok(None) };
        let Some(app) = self.open_apps.app_of(&key, self.gateway.clock().now()).await? else {
            return Ok(None);
        };
        if !self.open_apps.is_open(app).await? {
            return Ok(None);
        }
        let too_many = |problem: Problem| StoreError::LimitReached(problem.detail.into_owned());
        self.api.service().count_join(app).map_err(too_many)?;
        Ok(Some(app))
    }
}
