//! The port for published services.

use async_trait::async_trait;

use super::StoreError;
use crate::id::AppId;
use crate::name::{ServiceKind, ServiceName};
use crate::published::PublishedService;
use crate::time::Timestamp;

/// Services published by apps. Expired services are not returned, and are deleted when another one is published.
#[async_trait]
pub trait RegistryStore: Send + Sync {
    /// Stores or updates a service and returns it; the time of the first publication stays. More than `SERVICES_PER_APP_MAX_COUNT` are
    /// refused (LimitReached).
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

    /// Returns services by name after a given one, of one kind or of any.
    async fn services(
        &self,
        app: AppId,
        kind: Option<&ServiceKind>,
        after: Option<&ServiceName>,
        now: Timestamp,
        count: usize,
    ) -> Result<Vec<PublishedService>, StoreError>;
}
