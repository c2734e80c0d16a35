//! People, known by the app's own id.

use crate::id::{AppId, DeviceId};
use crate::name::ExternalId;
use crate::time::Timestamp;

/// A person of an app; exists as soon as a device or a group names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Whose user.
    pub app: AppId,
    /// The app's own id of the person.
    pub external_id: ExternalId,
    /// When first named.
    pub created_at: Timestamp,
    /// Devices of the person, at most the page asked for.
    pub devices: Vec<DeviceId>,
}
