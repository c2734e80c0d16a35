//! Upstream messages of devices to their apps.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Map;
use stentor_core::ports::store::StoreError;
use stentor_wire::mcs::McsData;

use super::channel::McsChannel;
use crate::limits::UPSTREAM_TTL_MAX;
use crate::upstream::{UpstreamDraft, UpstreamError};

/// Lifetime of a message with a time to live of zero: enough for its app to take it.
const NOW: Duration = Duration::from_secs(10);

/// Finds the registration of a message: `to` names the sender, as `12@gcm.googleapis.com` or alone, the category names the program.
pub(super) fn channel_of<'a>(
    stanza: &McsData,
    channels: impl Iterator<Item = &'a McsChannel>,
) -> Option<&'a McsChannel> {
    let to = stanza.to.as_deref().unwrap_or_default();
    let sender = to.split('@').next().unwrap_or_default();
    let is_for = |channel: &McsChannel| {
        channel.name.sender == sender
            || channel.identity.app.raw().to_string() == sender
            || channel.identity.app.to_string() == sender
    };
    let of_sender: Vec<&McsChannel> = channels.filter(|channel| is_for(channel)).collect();
    let is_of_program = |channel: &&&McsChannel| {
        let name = &channel.name;
        name.subtype.as_deref().unwrap_or(&name.category) == stanza.category
            || name.category == stanza.category
    };
    of_sender.iter().find(is_of_program).or_else(|| of_sender.first()).copied()
}

/// Returns the device's id of its message, by which a repeat is detected.
pub(super) fn key_of(stanza: &McsData) -> &str {
    let ids = [&stanza.id, &stanza.persistent_id];
    ids.into_iter().flatten().find(|id| !id.is_empty()).map_or("", String::as_str)
}

/// Returns the id to acknowledge to the device; empty if there is none.
pub(super) fn acknowledged_by(stanza: &McsData) -> &str {
    let ids = [&stanza.persistent_id, &stanza.id];
    ids.into_iter().flatten().find(|id| !id.is_empty()).map_or("", String::as_str)
}

/// Reads a message of a device.
pub(super) fn draft(stanza: &McsData) -> UpstreamDraft {
    let entries = stanza.app_data.iter().map(|entry| (entry.key.clone(), entry.value.as_str().into()));
    let mut data: Map<_, _> = entries.collect();
    if let Some(raw) = &stanza.raw_data {
        data.insert("raw_data".to_owned(), STANDARD.encode(raw).into());
    }
    let ttl = match stanza.ttl {
        None => UPSTREAM_TTL_MAX,
        Some(seconds) => Duration::from_secs(seconds.max(0).unsigned_abs().into()).max(NOW),
    };
    UpstreamDraft { key: key_of(stanza).to_owned(), data, ttl }
}

/// Returns the error word for a message that was not stored; `None` if the device should try again later.
pub(super) const fn refusal_word(error: &UpstreamError) -> Option<&'static str> {
    match error {
        UpstreamError::Invalid(_) => Some("invalid_parameters"),
        UpstreamError::Store(StoreError::LimitReached(_)) => Some("too_many_messages"),
        UpstreamError::Store(StoreError::NotFound(_)) => Some("unregistered"),
        UpstreamError::Store(_) => None,
    }
}
