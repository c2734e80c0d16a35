//! A message as a device gets it in JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use stentor_core::device::ProviderKind;
use stentor_core::id::MessageId;
use stentor_core::message::{Message, Notification, Priority};
use stentor_core::time::Timestamp;

use crate::contract::Instant;

/// What a device gets.
#[derive(Serialize)]
pub(super) struct DeviceMessageView<'a> {
    /// Tells a repeat, and is what the device confirms.
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
    /// What the sender gave for devices of the gateway alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway: Option<&'a Map<String, Value>>,
}

impl<'a> DeviceMessageView<'a> {
    pub(super) fn new(message: &'a Message, now: Timestamp) -> Self {
        let content = &message.spec.content;
        Self {
            id: message.id,
            sent_at: message.due_at.into(),
            ttl_seconds: message.remaining_ttl(now).as_seconds(),
            priority: message.spec.priority,
            collapse_key: message.spec.collapse_key.as_ref().map(|key| key.as_str()),
            notification: content.notification.as_ref(),
            data: &content.data,
            gateway: content.overrides.get(&ProviderKind::Gateway),
        }
    }

    /// Returns it as JSON in one line.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
