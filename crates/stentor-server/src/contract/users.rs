//! Users: replies.

use serde::Serialize;
use stentor_core::id::DeviceId;
use stentor_core::user::User;
use utoipa::ToSchema;

use super::Instant;

/// A user.
#[derive(Serialize, ToSchema)]
#[schema(as = User)]
pub struct UserView {
    /// The app's own id of the user.
    pub(crate) external_id: String,
    pub(crate) created_at: Instant,
    /// Devices of the user, at most 1,000; empty in lists.
    #[schema(value_type = Vec<String>)]
    pub(crate) devices: Vec<DeviceId>,
}

/// A page of the users.
#[derive(Serialize, ToSchema)]
pub struct UserList {
    pub(crate) users: Vec<UserView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

impl From<User> for UserView {
    fn from(user: User) -> Self {
        Self {
            external_id: user.external_id.into(),
            created_at: user.created_at.into(),
            devices: user.devices,
        }
    }
}
