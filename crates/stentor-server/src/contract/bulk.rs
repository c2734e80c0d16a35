//! Batches in one request: each item succeeds or is refused on its own, and the results have the order of the items.

use serde::ser::{Error as _, SerializeStruct as _};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use utoipa::ToSchema;

use super::RefusedView;
use super::devices::{DeviceRequest, RegisteredView};
use super::messages::{DryRun, MessageAccepted, MessageRequest};

/// Devices to register: 1 to 1,000, each as in a single registration.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceBatch {
    /// Decoded one by one, so that an invalid item refuses only itself.
    #[schema(value_type = Vec<DeviceRequest>, min_items = 1, max_items = 1000)]
    pub(crate) devices: Vec<Value>,
}

/// Result of one registration: exactly one field is present.
#[derive(Serialize, ToSchema)]
pub struct RegisterResult {
    /// The registered device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) registered: Option<RegisteredView>,
    /// Reason for the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<RefusedView>,
}

/// Result of each registration, in the order of the request.
#[derive(Serialize, ToSchema)]
pub struct RegisterResults {
    pub(crate) results: Vec<RegisterResult>,
}

/// A device and the topic to subscribe it to.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Subscription {
    /// Id of the device.
    pub(crate) device: String,
    /// Name of the topic, which is created if it does not exist.
    pub(crate) topic: String,
}

/// Subscriptions to make: 1 to 1,000.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubscriptionBatch {
    /// Decoded one by one, so that an invalid item refuses only itself.
    #[schema(value_type = Vec<Subscription>, min_items = 1, max_items = 1000)]
    pub(crate) subscriptions: Vec<Value>,
}

/// Result of one subscription: exactly one field is present.
#[derive(Serialize, ToSchema)]
pub struct SubscribeResult {
    /// True if the subscription is new; false if the device was already subscribed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changed: Option<bool>,
    /// Reason for the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<RefusedView>,
}

/// Result of each subscription, in the order of the request.
#[derive(Serialize, ToSchema)]
pub struct SubscribeResults {
    pub(crate) results: Vec<SubscribeResult>,
}

/// Messages to send: 1 to 1,000, each as in a single send.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageBatch {
    /// Decoded one by one, so that an invalid item refuses only itself.
    #[schema(value_type = Vec<MessageRequest>, min_items = 1, max_items = 1000)]
    pub(crate) messages: Vec<Value>,
}

/// Result of one message: exactly one field is present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SendResult {
    /// The accepted message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) accepted: Option<MessageAccepted>,
    /// Result of a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checked: Option<DryRun>,
    /// Reason for the refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<RefusedView>,
}

/// Result of each message, in the order of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SendResults {
    pub(crate) results: Vec<SendResult>,
}

/// Serializes each message through its type, so that a repeat hashes alike through any face: formats differ in whether an absent field is
/// omitted or carries its default.
impl Serialize for MessageBatch {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let messages = self.messages.iter().map(usual_form).collect::<Result<Vec<_>, _>>();
        let messages = messages.map_err(S::Error::custom)?;
        let mut record = to.serialize_struct("MessageBatch", 1)?;
        record.serialize_field("messages", &messages)?;
        record.end()
    }
}

/// Returns a message as its type serializes it. A value that is no message is returned unchanged.
pub(crate) fn usual_form(message: &Value) -> serde_json::Result<Value> {
    match MessageRequest::deserialize(message) {
        Ok(read) => serde_json::to_value(read),
        Err(_) => Ok(message.clone()),
    }
}
