//! Messages of the app in the format for MQTT devices.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use stentor_core::device::ProviderKind;
use stentor_core::message::{Message, Notification, Priority};
use stentor_core::target::Target;
use stentor_core::time::Timestamp;

use crate::device_keys::{ContentError, SealedBy, SealedMessage};
use stentor_wire::web_push::PushKeys;

use super::subscriptions::{DELETED_TOPIC, DEVICE_TOPIC, TOPIC_PREFIX};

/// The kind of a payload, for MQTT 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MqttPayloadKind {
    /// A JSON object.
    Json,
    /// The app's own bytes.
    Raw,
    /// Bytes that only the device can decrypt.
    Sealed(SealedBy),
}

/// A PUBLISH to a device, without its QoS.
#[derive(Debug)]
pub(super) struct MqttDelivery {
    pub(super) topic: String,
    pub(super) payload: Vec<u8>,
    pub(super) kind: MqttPayloadKind,
    /// Remaining lifetime in seconds; `None` for unlimited.
    pub(super) expiry_seconds: Option<u32>,
    /// The message's id.
    pub(super) message_id: Option<String>,
}

/// The JSON payload of a message without raw bytes.
#[derive(Serialize)]
struct MqttMessageRecord<'a> {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    notification: Option<&'a Notification>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    data: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    collapse_key: Option<&'a str>,
    priority: Priority,
    /// In milliseconds since 1970.
    sent_at: i64,
}

/// Returns the MQTT topic of a message.
pub(super) fn topic_of(message: &Message) -> Cow<'static, str> {
    match &message.spec.target {
        Target::Topic(name) => format!("{TOPIC_PREFIX}{}", name.as_str()).into(),
        _ => DEVICE_TOPIC.into(),
    }
}

/// Returns the remaining lifetime of a message in seconds; `None` for unlimited.
pub(super) fn expiry_seconds_of(message: &Message, now: Timestamp) -> Option<u32> {
    u32::try_from(message.remaining_ttl(now).as_seconds()).ok()
}

/// Formats a message for a device, sealed if the device has keys.
pub(super) fn delivery_of(
    message: &Message,
    now: Timestamp,
    keys: Option<&PushKeys>,
) -> Result<MqttDelivery, ContentError> {
    let topic = topic_of(message).into_owned();
    let (payload, kind) = match keys {
        Some(keys) => {
            let SealedMessage { body, by } =
                SealedMessage::of(message, || Ok(clear_payload(message)?.0), keys)?;
            (body, MqttPayloadKind::Sealed(by))
        }
        None => clear_payload(message)?,
    };
    let expiry_seconds = expiry_seconds_of(message, now);
    let message_id = Some(message.id.to_string());
    Ok(MqttDelivery { topic, payload, kind, expiry_seconds, message_id })
}

fn clear_payload(message: &Message) -> Result<(Vec<u8>, MqttPayloadKind), ContentError> {
    match raw_of(message) {
        Some(raw) => Ok((raw, MqttPayloadKind::Raw)),
        None => Ok((json_of(message)?, MqttPayloadKind::Json)),
    }
}

/// Formats the notice that `count` messages were deleted.
pub(super) fn deletion_of(count: usize) -> MqttDelivery {
    MqttDelivery {
        topic: DELETED_TOPIC.to_owned(),
        payload: serde_json::json!({ "deleted": count }).to_string().into_bytes(),
        kind: MqttPayloadKind::Json,
        expiry_seconds: None,
        message_id: None,
    }
}

fn raw_of(message: &Message) -> Option<Vec<u8>> {
    let own = message.spec.content.overrides.get(&ProviderKind::Gateway)?;
    STANDARD.decode(own.get("raw")?.as_str()?).ok()
}

fn json_of(message: &Message) -> serde_json::Result<Vec<u8>> {
    let spec = &message.spec;
    let record = MqttMessageRecord {
        id: message.id.to_string(),
        notification: spec.content.notification.as_ref(),
        data: &spec.content.data,
        collapse_key: spec.collapse_key.as_ref().map(|key| key.as_str()),
        priority: spec.priority,
        sent_at: message.created_at.as_millis(),
    };
    serde_json::to_vec(&record)
}
