//! Many things in one request: each is served or refused by itself, and results stand in the order of what was asked.

use serde::ser::{Error as _, SerializeStruct as _};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use utoipa::ToSchema;

use super::RefusedView;
use super::devices::{DeviceRequest, RegisteredView};
use super::messages::{DryRun, MessageAccepted, MessageRequest};

/// Devices to register: 1 to 1,000, each as when it is registered alone.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceBatch {
    /// Read one by one, so that what is wrong with one refuses that one only.
    #[schema(value_type = Vec<DeviceRequest>, min_items = 1, max_items = 1000)]
    pub(crate) devices: Vec<Value>,
}

/// What came of one registration: one of both is there.
#[derive(Serialize, ToSchema)]
pub struct RegisterResult {
    /// The device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) registered: Option<RegisteredView>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<RefusedView>,
}

/// What came of each registration, in order.
#[derive(Serialize, ToSchema)]
pub struct RegisterResults {
    pub(crate) results: Vec<RegisterResult>,
}

/// A device and the topic that it is to be subscribed to.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Subscription {
    /// The device's id.
    pub(crate) device: String,
    /// The topic's name; it exists from then on.
    pub(crate) topic: String,
}

/// Subscriptions to make: 1 to 1,000.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubscriptionBatch {
    /// Read one by one, so that what is wrong with one refuses that one only.
    #[schema(value_type = Vec<Subscription>, min_items = 1, max_items = 1000)]
    pub(crate) subscriptions: Vec<Value>,
}

/// What came of one subscription: one of both is there.
#[derive(Serialize, ToSchema)]
pub struct SubscribeResult {
    /// Whether it is new; false when the device was subscribed before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changed: Option<bool>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<RefusedView>,
}

/// What came of each subscription, in order.
#[derive(Serialize, ToSchema)]
pub struct SubscribeResults {
    pub(crate) results: Vec<SubscribeResult>,
}

/// Messages to send: 1 to 1,000, each as when it is sent alone.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageBatch {
    /// Read one by one, so that what is wrong with one refuses that one only.
    #[schema(value_type = Vec<MessageRequest>, min_items = 1, max_items = 1000)]
    pub(crate) messages: Vec<Value>,
}

/// What came of one message: one of these is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SendResult {
    /// The message that is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) accepted: Option<MessageAccepted>,
    /// What a dry run found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checked: Option<DryRun>,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<RefusedView>,
}

/// What came of each message, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SendResults {
    pub(crate) results: Vec<SendResult>,
}

/// Writes each message as its type does, so that a repeat is the same through any face: what is absent in one format is there
/// with its usual value in another.
impl Serialize for MessageBatch {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let messages = self.messages.iter().map(usual_form).collect::<Result<Vec<_>, _>>();
        let messages = messages.map_err(S::Error::custom)?;
        let mut record = to.serialize_struct("MessageBatch", 1)?;
        record.serialize_field("messages", &messages)?;
        record.end()
    }
}

/// Returns a message as its type writes it; what is no message is as it was told.
pub(crate) fn usual_form(message: &Value) -> serde_json::Result<Value> {
    match MessageRequest::deserialize(message) {
        Ok(read) => serde_json::to_value(read),
        Err(_) => Ok(message.clone()),
    }
}
