use async_trait::async_trait;

use super::StoreError;
use crate::id::AppId;
use crate::name::{ServiceKind, ServiceName};
use crate::published::PublishedService;
use crate::time::Timestamp;

/// Services that are published by app. What has expired is as if it were not there, and goes when another one is published.
#[async_trait]
pub trait RegistryStore: Send + Sync {
    /// Keeps a service or what is said anew of it (the time of the first publishing stays), and returns it. More than
    /// `SERVICES_PER_APP_MAX_COUNT` are refused (LimitReached).
    async fn put_service(
        &self,
        service: &PublishedService,
        now: Timestamp,
    ) -> Result<PublishedService, StoreError>;

    /// Returns a service.
    async fn service(
        &self,
        app: AppId,
        name: &ServiceName,
        now: Timestamp,
    ) -> Result<PublishedService, StoreError>;

    /// Returns services by name, of one kind or of any, those after a name.
    async fn services(
        &self,
        app: AppId,
        kind: Option<&ServiceKind>,
        after: Option<&ServiceName>,
        now: Timestamp,
        count: usize,
    ) -> Result<Vec<PublishedService>, StoreError>;

    /// Removes a service.
    async fn remove_service(&self, app: AppId, name: &ServiceName, now: Timestamp) -> Result<(), StoreError>;
}
