//! The registry: services that clients publish and look up.

use serde::{Deserialize, Serialize};
use stentor_core::published::PublishedService;
use utoipa::{IntoParams, ToSchema};

use super::Instant;

/// Default time to live of a published service, in seconds.
pub(crate) const TTL_DEFAULT_SECONDS: u64 = 300;

/// A service to publish.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceRequest {
    /// Protocol of the service, such as `http` or `grpc`.
    pub kind: String,
    /// Address of the service: visible ASCII, such as a URL. The server never connects to it; clients that look the service up do.
    pub address: String,
    /// Description for people.
    #[serde(default)]
    pub description: Option<String>,
    /// Time until the entry expires unless it is published again, 1 to 604,800 seconds; 300 when absent.
    #[serde(default)]
    pub ttl_seconds: Option<u64>,
}

/// Filter and page of a list of services.
#[derive(Debug, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceQuery {
    /// Start after this cursor: `next` of the previous page.
    pub after: Option<String>,
    /// Maximum number of services, 1 to 1,000; 100 when absent.
    pub limit: Option<usize>,
    /// Only services with this protocol.
    pub kind: Option<String>,
}

/// A published service.
#[derive(Serialize, ToSchema)]
#[schema(as = PublishedService)]
pub struct PublishedServiceView {
    pub(crate) name: String,
    /// Protocol of the service.
    pub(crate) kind: String,
    /// Address of the service.
    pub(crate) address: String,
    /// Description for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// Time of first publication.
    pub(crate) published_at: Instant,
    /// Time of expiry, unless the service is published again.
    pub(crate) expires_at: Instant,
}

/// A page of the services.
#[derive(Serialize, ToSchema)]
pub struct ServiceList {
    pub(crate) services: Vec<PublishedServiceView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

impl From<PublishedService> for PublishedServiceView {
    fn from(service: PublishedService) -> Self {
        Self {
            name: service.name.into(),
            kind: service.kind.into(),
            address: service.address.into(),
            description: service.description.map(Into::into),
            published_at: service.published_at.into(),
            expires_at: service.expires_at.into(),
        }
    }
}
