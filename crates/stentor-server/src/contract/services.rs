//! The registry: services that others publish and find.

use serde::{Deserialize, Serialize};
use stentor_core::published::PublishedService;
use utoipa::{IntoParams, ToSchema};

use super::Instant;

/// How long a service is found when nobody says otherwise, in seconds.
pub(crate) const TTL_DEFAULT_SECONDS: u64 = 300;

/// What is said of a service that is published.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceRequest {
    /// What it speaks, such as `http` or `grpc`.
    pub kind: String,
    /// Where it is: visible ASCII, such as a URL. Nothing connects there; who finds it does.
    pub address: String,
    /// What it does, for people.
    #[serde(default)]
    pub description: Option<String>,
    /// For how long it is found unless it is published again: 1 to 604,800; 300 when absent.
    #[serde(default)]
    pub ttl_seconds: Option<u64>,
}

/// Which services are asked for.
#[derive(Debug, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceQuery {
    /// What comes after this; `next` of the piece before.
    pub after: Option<String>,
    /// At most this many, 1 to 1,000; 100 when absent.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// Only those that speak this.
    pub kind: Option<String>,
}

/// A service that is published.
#[derive(Serialize, ToSchema)]
#[schema(as = PublishedService)]
pub struct PublishedServiceView {
    pub(crate) name: String,
    /// What it speaks.
    pub(crate) kind: String,
    /// Where it is.
    pub(crate) address: String,
    /// What it does, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// When it was published first.
    pub(crate) published_at: Instant,
    /// From when on it is not found, unless it is published again.
    pub(crate) expires_at: Instant,
}

/// A piece of the services.
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
