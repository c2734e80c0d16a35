//! The JSON form in which devices receive a message.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde_json::{Map, Value};
use stentor_core::device::ProviderKind;
use stentor_core::id::MessageId;
use stentor_core::message::{Message, Notification, Priority};
use stentor_core::time::Timestamp;
use stentor_gateway::SENDER_RECEIPT_FIELD;
use stentor_gateway::{ContentError, SealedMessage};
use stentor_wire::web_push::PushKeys;

use crate::contract::Instant;

/// The message as a device without keys receives it.
#[derive(Serialize)]
struct DeviceMessageView<'a> {
    /// Identifies a repeated delivery; the device confirms this id.
    id: MessageId,
    sent_at: Instant,
    ttl_seconds: u64,
    priority: Priority,
    #[serde(skip_serializing_if = "Option::is_none")]
    collapse_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notification: Option<&'a Notification>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    data: &'a BTreeMap<String, String>,
    /// The sender's override for devices of the gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway: Option<Cow<'a, Map<String, Value>>>,
}

impl<'a> DeviceMessageView<'a> {
    fn new(message: &'a Message, now: Timestamp) -> Self {
        let content = &message.spec.content;
        Self {
            id: message.id,
            sent_at: message.due_at.into(),
            ttl_seconds: message.remaining_ttl(now).as_seconds(),
            priority: message.spec.priority,
            collapse_key: message.spec.collapse_key.as_ref().map(|key| key.as_str()),
            notification: content.notification.as_ref(),
            data: &content.data,
            gateway: content.overrides.get(&ProviderKind::Gateway).and_then(for_devices),
        }
    }

    fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}

/// The message as a device with keys receives it: the fields needed before it is opened, and the sealed body.
#[derive(Serialize)]
struct SealedMessageView {
    id: MessageId,
    sent_at: Instant,
    ttl_seconds: u64,
    priority: Priority,
    sealed: SealedBodyView,
}

/// A body that only the device can open.
#[derive(Serialize)]
struct SealedBodyView {
    encoding: &'static str,
    /// In base64.
    body: String,
    /// `server` if the body is a whole message as other devices receive it, `sender` if the sender has supplied and sealed it.
    by: &'static str,
}

/// Encodes a message for a device as one line of JSON, sealed if the device has keys.
pub(super) fn message_json(
    message: &Message,
    now: Timestamp,
    keys: Option<&PushKeys>,
) -> Result<String, ContentError> {
    let clear = DeviceMessageView::new(message, now);
    let Some(keys) = keys else { return Ok(clear.to_json()?) };
    let sealed = SealedMessage::of(message, || Ok(clear.to_json()?.into_bytes()), keys)?;
    let body = BASE64_STANDARD.encode(sealed.body);
    let view = SealedMessageView {
        id: message.id,
        sent_at: message.due_at.into(),
        ttl_seconds: message.remaining_ttl(now).as_seconds(),
        priority: message.spec.priority,
        sealed: SealedBodyView { encoding: "aes128gcm", body, by: sealed.by.as_str() },
    };
    Ok(serde_json::to_string(&view)?)
}

/// Returns the sender's override without the fields for this server.
fn for_devices(own: &Map<String, Value>) -> Option<Cow<'_, Map<String, Value>>> {
    if !own.contains_key(SENDER_RECEIPT_FIELD) {
        return Some(Cow::Borrowed(own));
    }
    let mut rest = own.clone();
    rest.remove(SENDER_RECEIPT_FIELD);
    (!rest.is_empty()).then_some(Cow::Owned(rest))
}
