//! Groups and their members.

use serde::{Deserialize, Serialize};
use stentor_core::group::Group;
use stentor_core::id::DeviceId;
use stentor_core::name::ExternalId;
use utoipa::ToSchema;

use super::Instant;

/// A group.
#[derive(Serialize, ToSchema)]
#[schema(as = Group)]
pub struct GroupView {
    pub(crate) name: String,
    pub(crate) created_at: Instant,
    pub(crate) member_count: u64,
}

/// A page of the groups.
#[derive(Serialize, ToSchema)]
pub struct GroupList {
    pub(crate) groups: Vec<GroupView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// Members to add or remove: at least one, and at most 1,000 users and 1,000 devices.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MembersRequest {
    /// Users, with all their devices.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub(crate) users: Vec<ExternalId>,
    /// Single devices.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub(crate) devices: Vec<DeviceId>,
}

/// A page of the members.
#[derive(Serialize, ToSchema)]
pub struct MemberList {
    pub(crate) users: Vec<String>,
    #[schema(value_type = Vec<String>)]
    pub(crate) devices: Vec<DeviceId>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

impl From<Group> for GroupView {
    fn from(group: Group) -> Self {
        Self {
            name: group.name.into(),
            created_at: group.created_at.into(),
            member_count: group.member_count,
        }
    }
}
