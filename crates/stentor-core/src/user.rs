//! Users, known by the app's own id.

use crate::id::{AppId, DeviceId};
use crate::name::ExternalId;
use crate::time::Timestamp;

/// A user of an app; exists as soon as a device or a group names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The owning app.
    pub app: AppId,
    /// The app's own id of the user.
    pub external_id: ExternalId,
    /// Time of the first mention.
    pub created_at: Timestamp,
    /// Devices of the user, at most the requested page.
    pub devices: Vec<DeviceId>,
}
