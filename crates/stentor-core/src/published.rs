//! The registry: services that others publish, so that they are found.

use crate::id::AppId;
use crate::name::{ServiceAddress, ServiceKind, ServiceName, ServiceText};
use crate::time::Timestamp;

/// A service that somebody published; it is found until it expires, unless it is published again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedService {
    /// In whose registry.
    pub app: AppId,
    /// What it is called, one in the registry.
    pub name: ServiceName,
    /// What it speaks, such as `http`.
    pub kind: ServiceKind,
    /// Where it is; the registry only keeps it, nothing connects there.
    pub address: ServiceAddress,
    /// What it does, for people.
    pub description: Option<ServiceText>,
    /// When it was published first.
    pub published_at: Timestamp,
    /// From when on it is not found.
    pub expires_at: Timestamp,
}
