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
    /// Devices subscribed.
    pub(crate) device_count: u64,
}

/// A piece of the topics.
#[derive(Serialize, ToSchema)]
pub struct TopicList {
    pub(crate) topics: Vec<TopicView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// Devices to subscribe or to take out: 1 to 1,000.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubscriptionRequest {
    #[schema(value_type = Vec<String>, min_items = 1, max_items = 1000)]
    pub(crate) devices: Vec<DeviceId>,
}

/// What a change came to.
#[derive(Serialize, ToSchema)]
#[schema(as = Change)]
pub struct SubscriptionChangeView {
    /// Added or removed.
    pub(crate) changed: u64,
    /// Nothing was to do.
    pub(crate) unchanged: u64,
    /// Not this app's: devices and people.
    pub(crate) unknown: u64,
    /// The devices among them, in the order in which they were named.
    #[schema(value_type = Vec<String>)]
    pub(crate) unknown_devices: Vec<DeviceId>,
    /// The people among them, of a group's members; absent when there are none.
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
