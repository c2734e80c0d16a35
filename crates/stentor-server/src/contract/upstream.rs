//! What devices send to their app: it waits until somebody has taken it over.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stentor_core::id::{DeviceId, UpstreamId};
use stentor_core::ports::store::UpstreamChange;
use stentor_core::upstream::UpstreamMessage;
use utoipa::ToSchema;

use super::Instant;

/// Most messages that are named in one request.
pub(crate) const UPSTREAM_IDS_MAX_COUNT: usize = 1_000;

/// A message of a device that waits.
#[derive(Serialize, ToSchema)]
#[schema(as = UpstreamMessage)]
pub struct UpstreamView {
    #[schema(value_type = String)]
    pub(crate) id: UpstreamId,
    /// The device that sent it.
    #[schema(value_type = String)]
    pub(crate) device: DeviceId,
    /// The device's own name for it: the same again from the same device is the same message.
    pub(crate) key: String,
    /// What it says: an object.
    #[schema(value_type = Object)]
    pub(crate) data: Value,
    /// How often it was handed over before.
    pub(crate) attempts: u32,
    pub(crate) created_at: Instant,
    /// From when on nobody needs it any more.
    pub(crate) expires_at: Instant,
}

/// A piece of what waits, oldest first.
#[derive(Serialize, ToSchema)]
pub struct UpstreamList {
    pub(crate) messages: Vec<UpstreamView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// A message of a device that nobody took over.
#[derive(Serialize, ToSchema)]
#[schema(as = DeadLetter)]
pub struct DeadLetterView {
    #[schema(value_type = String)]
    pub(crate) id: UpstreamId,
    /// The device that sent it.
    #[schema(value_type = String)]
    pub(crate) device: DeviceId,
    /// The device's own name for it.
    pub(crate) key: String,
    /// What it says: an object.
    #[schema(value_type = Object)]
    pub(crate) data: Value,
    /// How often it was handed over.
    pub(crate) attempts: u32,
    /// Why nobody took it over.
    pub(crate) reason: String,
    pub(crate) created_at: Instant,
    /// When nobody needed it any more.
    pub(crate) expires_at: Instant,
}

/// A piece of the dead letters, oldest first.
#[derive(Serialize, ToSchema)]
pub struct DeadLetterList {
    pub(crate) dead_letters: Vec<DeadLetterView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// Messages of devices.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamIds {
    /// 1 to 1,000 of their ids; those that are not there are passed over and named in the reply.
    #[schema(value_type = Vec<String>)]
    pub(crate) ids: Vec<UpstreamId>,
}

/// What became of messages that were named.
#[derive(Serialize, ToSchema)]
#[schema(as = UpstreamChange)]
pub struct UpstreamChangeView {
    /// How many of them it was news for.
    pub(crate) changed: u64,
    /// How many were so before.
    pub(crate) unchanged: u64,
    /// How many are not there, or can not be changed in this way: a dead letter is not acknowledged, and what was taken over is not
    /// tried again.
    pub(crate) unknown: u64,
    /// Their ids, in the order in which they were named.
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

/// Returns what a device said as it was kept; an object, unless the store is damaged.
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

impl DeadLetterView {
    /// Shows a dead letter with the reason that was kept.
    pub(crate) fn new(message: UpstreamMessage, reason: String) -> Self {
        Self {
            data: said(&message),
            id: message.id,
            device: message.device,
            key: message.key,
            attempts: message.attempts,
            reason,
            created_at: message.created_at.into(),
            expires_at: message.expires_at.into(),
        }
    }
}
