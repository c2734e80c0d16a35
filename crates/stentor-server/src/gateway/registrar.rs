//! Who may register programs of MCS: whoever has a key of the app for it, and anybody where the app says so.

use std::sync::Arc;

use async_trait::async_trait;
use stentor_core::app::Scope;
use stentor_core::id::AppId;
use stentor_core::ports::store::StoreError;
use stentor_gateway::Gateway;
use stentor_gateway::autopush::OpenApps;
use stentor_gateway::mcs::McsRegistrar;

use super::arrival_limiter::ArrivalLimiter;
use crate::contract::{ErrorCode, Origin, ServiceResult};
use crate::face::Api;

/// Decides by API keys with the scope `join`, and by what an app's gateway credential says.
pub(super) struct KeyRegistrar {
    api: Api,
    open_apps: OpenApps,
    limiter: Arc<ArrivalLimiter<AppId>>,
}

impl KeyRegistrar {
    pub(super) fn new(api: Api, gateway: &Gateway, limiter: Arc<ArrivalLimiter<AppId>>) -> Self {
        Self { api, open_apps: OpenApps::new(Arc::clone(gateway.store())), limiter }
    }

    async fn allow(&self, app: AppId, key: &str) -> ServiceResult<()> {
        let service = self.api.service();
        let caller = service.identify(key).await?.on(app)?;
        caller.require_any(&[Scope::Join, Scope::Register])?;
        service.open_gateway(caller, Origin::default()).await
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
            None => self.open_apps.is_open(app).await?,
        };
        Ok(allowed && self.limiter.take(app).is_ok())
    }
}
