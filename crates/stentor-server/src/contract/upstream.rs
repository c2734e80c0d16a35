//! Upstream messages, which devices send to their app. Each waits until the app acknowledges it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stentor_core::id::{DeviceId, UpstreamId};
use stentor_core::ports::store::UpstreamChange;
use stentor_core::upstream::UpstreamMessage;
use utoipa::ToSchema;

use super::Instant;

/// Maximum number of message ids in one request.
pub(crate) const UPSTREAM_IDS_MAX_COUNT: usize = 1_000;

/// A waiting upstream message.
#[derive(Serialize, ToSchema)]
#[schema(as = UpstreamMessage)]
pub struct UpstreamView {
    #[schema(value_type = String)]
    pub(crate) id: UpstreamId,
    /// The device that sent it.
    #[schema(value_type = String)]
    pub(crate) device: DeviceId,
    /// Key that the device chose for the message. The same key from the same device denotes the same message.
    pub(crate) key: String,
    /// Content of the message: an object.
    #[schema(value_type = Object)]
    pub(crate) data: Value,
    /// Number of earlier deliveries to the app.
    pub(crate) attempts: u32,
    pub(crate) created_at: Instant,
    /// Time of expiry.
    pub(crate) expires_at: Instant,
}

/// A page of the waiting messages, oldest first.
#[derive(Serialize, ToSchema)]
pub struct UpstreamList {
    pub(crate) messages: Vec<UpstreamView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// An upstream message that was not acknowledged.
#[derive(Serialize, ToSchema)]
#[schema(as = DeadLetter)]
pub struct DeadLetterView {
    #[schema(value_type = String)]
    pub(crate) id: UpstreamId,
    /// The device that sent it.
    #[schema(value_type = String)]
    pub(crate) device: DeviceId,
    /// Key that the device chose for the message.
    pub(crate) key: String,
    /// Content of the message: an object.
    #[schema(value_type = Object)]
    pub(crate) data: Value,
    /// Number of deliveries to the app.
    pub(crate) attempts: u32,
    /// Reason for which it was given up.
    pub(crate) reason: String,
    pub(crate) created_at: Instant,
    /// Time of expiry.
    pub(crate) expires_at: Instant,
}

/// A page of the dead letters, oldest first.
#[derive(Serialize, ToSchema)]
pub struct DeadLetterList {
    pub(crate) dead_letters: Vec<DeadLetterView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// Ids of upstream messages.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamIds {
    /// 1 to 1,000 message ids. Unknown ids are skipped and listed in the reply.
    #[schema(value_type = Vec<String>)]
    pub(crate) ids: Vec<UpstreamId>,
}

/// Result of a change of upstream messages.
#[derive(Serialize, ToSchema)]
#[schema(as = UpstreamChange)]
pub struct UpstreamChangeView {
    /// Number of messages changed.
    pub(crate) changed: u64,
    /// Number of messages that already had the requested state.
    pub(crate) unchanged: u64,
    /// Number of messages that do not exist or do not allow the change: a dead letter cannot be acknowledged, and an acknowledged message
    /// cannot be retried.
    pub(crate) unknown: u64,
    /// Ids of those messages, in the order of the request.
    #[schema(value_type = Vec<String>)]
    pub(crate) unknown_ids: Vec<UpstreamId>,
}

impl From<UpstreamChange> for UpstreamChangeView {
    fn from(change: UpstreamChange) -> Self {
        Self {
            changed: change.changed,
            unchanged: change.unchanged,
            unknown: change.unknown.len() as u64,
            unknown_ids: change.unknown,
        }
    }
}

/// Returns the stored content of a device's message: an object, unless the store is damaged.
pub(crate) fn said(message: &UpstreamMessage) -> Value {
    serde_json::from_str(&message.body).unwrap_or_default()
}

impl From<UpstreamMessage> for UpstreamView {
    fn from(message: UpstreamMessage) -> Self {
        Self {
            data: said(&message),
            id: message.id,
            device: message.device,
            key: message.key,
            attempts: message.attempts,
            created_at: message.created_at.into(),
            expires_at: message.expires_at.into(),
        }
    }
}

impl From<UpstreamMessage> for DeadLetterView {
    fn from(message: UpstreamMessage) -> Self {
        Self {
            data: said(&message),
            id: message.id,
            device: message.device,
            key: message.key,
            attempts: message.attempts,
            reason: message.dead_reason.unwrap_or_default(),
            created_at: message.created_at.into(),
            expires_at: message.expires_at.into(),
        }
    }
}
