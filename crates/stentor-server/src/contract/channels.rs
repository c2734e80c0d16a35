//! Broadcast channels of Live Activities.

use serde::{Deserialize, Serialize};
use stentor_core::channel::ChannelStorage;
use stentor_core::name::ChannelId;
use utoipa::ToSchema;

/// A channel to create.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChannelRequest {
    /// Messages that the channel keeps for phones that are away: `none`, or `latest` for the latest one; `none` when absent.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub storage: Option<ChannelStorage>,
}

/// A channel at its push service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Channel)]
pub struct ChannelView {
    /// Name of the channel, which the app gives to its phones.
    pub(crate) channel: String,
}

/// The channels of an app, as its push service lists them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChannelList {
    pub(crate) channels: Vec<ChannelView>,
}

impl From<ChannelId> for ChannelView {
    fn from(id: ChannelId) -> Self {
        Self { channel: id.into() }
    }
}
