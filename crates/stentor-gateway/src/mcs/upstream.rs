//! What a device sends to its app.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Map;
use stentor_core::ports::store::StoreError;
use stentor_wire::mcs::McsData;

use super::channel::McsChannel;
use crate::limits::UPSTREAM_TTL_MAX;
use crate::upstream::{UpstreamDraft, UpstreamError};

/// How long a message waits that is wanted now or never: as long as its app needs to take it.
const NOW: Duration = Duration::from_secs(10);

/// Finds the registration that a message belongs to: `to` names the sender, as `12@gcm.googleapis.com` or alone, the category
/// the program.
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

/// Returns the device's name for its message, which is what tells a repeat.
pub(super) fn key_of(stanza: &McsData) -> &str {
    let ids = [&stanza.id, &stanza.persistent_id];
    ids.into_iter().flatten().find(|id| !id.is_empty()).map_or("", String::as_str)
}

/// Returns what is acknowledged to the device; empty where it cannot be named.
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

/// Returns the word by which a device is told why its message was not kept; `None` where it is to try again later.
pub(super) const fn refusal_word(error: &UpstreamError) -> Option<&'static str> {
    match error {
        UpstreamError::Invalid(_) => Some("invalid_parameters"),
        UpstreamError::Store(StoreError::LimitReached(_)) => Some("too_many_messages"),
        UpstreamError::Store(StoreError::NotFound(_)) => Some("unregistered"),
        UpstreamError::Store(_) => None,
    }
}
