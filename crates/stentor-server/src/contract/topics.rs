//! Topics and subscriptions.

use serde::{Deserialize, Serialize};
use stentor_core::id::DeviceId;
use stentor_core::name::ExternalId;
use stentor_core::ports::store::SubscriptionChange;
use stentor_core::topic::TopicSummary;
use utoipa::ToSchema;

/// A topic.
#[derive(Serialize, ToSchema)]
#[schema(as = Topic)]
pub struct TopicView {
    pub(crate) name: String,
    /// Number of subscribed devices.
    pub(crate) device_count: u64,
}

/// A page of the topics.
#[derive(Serialize, ToSchema)]
pub struct TopicList {
    pub(crate) topics: Vec<TopicView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// Devices to subscribe or unsubscribe: 1 to 1,000.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubscriptionRequest {
    #[schema(value_type = Vec<String>, min_items = 1, max_items = 1000)]
    pub(crate) devices: Vec<DeviceId>,
}

/// Result of a change of subscriptions or members.
#[derive(Serialize, ToSchema)]
#[schema(as = Change)]
pub struct SubscriptionChangeView {
    /// Subscriptions or members added or removed.
    pub(crate) changed: u64,
    /// Devices and users that needed no change.
    pub(crate) unchanged: u64,
    /// Devices and users unknown in this app.
    pub(crate) unknown: u64,
    /// The unknown devices, in the order of the request.
    #[schema(value_type = Vec<String>)]
    pub(crate) unknown_devices: Vec<DeviceId>,
    /// The unknown users, for members of a group; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<String>>)]
    pub(crate) unknown_users: Vec<ExternalId>,
}

impl From<SubscriptionChange> for SubscriptionChangeView {
    fn from(change: SubscriptionChange) -> Self {
        Self {
            changed: change.changed,
            unchanged: change.unchanged,
            unknown: change.unknown(),
            unknown_devices: change.unknown_devices,
            unknown_users: change.unknown_users,
        }
    }
}

impl From<TopicSummary> for TopicView {
    fn from(topic: TopicSummary) -> Self {
        Self { name: topic.name.into(), device_count: topic.device_count }
    }
}
