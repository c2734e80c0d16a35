//! The registry: services that others publish for discovery.

use crate::id::AppId;
use crate::name::{ServiceAddress, ServiceKind, ServiceName, ServiceText};
use crate::time::Timestamp;

/// A published service; it is listed until it expires, unless it is published again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedService {
    /// The app of the registry.
    pub app: AppId,
    /// Its name, unique in the registry.
    pub name: ServiceName,
    /// Its protocol, such as `http`.
    pub kind: ServiceKind,
    /// Its address; the server stores it and never connects to it.
    pub address: ServiceAddress,
    /// Its description, for people.
    pub description: Option<ServiceText>,
    /// Time of the first publication.
    pub published_at: Timestamp,
    /// Time from which it is no longer listed.
    pub expires_at: Timestamp,
}
