use std::ops::Bound;

use async_trait::async_trait;
use stentor_core::id::AppId;
use stentor_core::limits::SERVICES_PER_APP_MAX_COUNT;
use stentor_core::name::{ServiceKind, ServiceName};
use stentor_core::ports::store::{RegistryStore, StoreError};
use stentor_core::published::PublishedService;
use stentor_core::time::Timestamp;

use super::MemoryStore;
use super::topics::after_name;

#[async_trait]
impl RegistryStore for MemoryStore {
    async fn put_service(
        &self,
        service: &PublishedService,
        now: Timestamp,
    ) -> Result<PublishedService, StoreError> {
        let mut state = self.lock();
        let services = &mut state.app_mut(service.app)?.services;
        services.retain(|_, known| known.expires_at > now);
        let mut kept = service.clone();
        match services.get(&service.name) {
            Some(known) => kept.published_at = known.published_at,
            None if services.len() >= SERVICES_PER_APP_MAX_COUNT => {
                let why = format!("an app has at most {SERVICES_PER_APP_MAX_COUNT} services");
                return Err(StoreError::LimitReached(why));
            }
            None => {}
        }
        services.insert(kept.name.clone(), kept.clone());
        Ok(kept)
    }

    async fn service(
        &self,
        app: AppId,
        name: &ServiceName,
        now: Timestamp,
    ) -> Result<PublishedService, StoreError> {
        let state = self.lock();
        let known = state.app(app)?.services.get(name).filter(|known| known.expires_at > now);
        known.cloned().ok_or(StoreError::NotFound("service"))
    }

    async fn services(
        &self,
        app: AppId,
        kind: Option<&ServiceKind>,
        after: Option<&ServiceName>,
        now: Timestamp,
        count: usize,
    ) -> Result<Vec<PublishedService>, StoreError> {
        let state = self.lock();
        let all = state.app(app)?.services.range((after_name(after), Bound::Unbounded));
        let found = all
            .map(|(_, service)| service)
            .filter(|service| service.expires_at > now && kind.is_none_or(|kind| service.kind == *kind));
        Ok(found.take(count).cloned().collect())
    }

    async fn remove_service(&self, app: AppId, name: &ServiceName, now: Timestamp) -> Result<(), StoreError> {
        let removed = self.lock().app_mut(app)?.services.remove(name);
        removed.filter(|known| known.expires_at > now).map(drop).ok_or(StoreError::NotFound("service"))
    }
}
