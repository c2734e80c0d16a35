//! Messages as MCS data stanzas.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};
use stentor_core::device::ProviderKind;
use stentor_core::message::{Content, Message};
use stentor_core::time::Timestamp;
use stentor_wire::mcs::{McsAppData, McsData};

use super::channel::McsChannelName;
use super::persistent_id::McsPersistentId;
use super::sealed::{McsSealed, seal};

/// Creates the stanza of a message for one registration. Returns `None` if the registration has keys and the content cannot be sealed for
/// them, because such content is never sent in clear.
pub(super) fn message_stanza(
    channel: &McsChannelName,
    message: &Message,
    id: McsPersistentId,
    now: Timestamp,
) -> Option<McsData> {
    let seconds = message.remaining_ttl(now).as_seconds();
    let mut stanza = McsData {
        id: Some(message.id.to_string()),
        persistent_id: Some(id.to_string()),
        token: message.spec.collapse_key.as_ref().map(|key| key.as_str().to_owned()),
        ttl: Some(i32::try_from(seconds).unwrap_or(i32::MAX)),
        sent: Some(message.created_at.as_millis()),
        // Otherwise Chromium acknowledges with its next heartbeat, which may be half an hour away.
        immediate_ack: Some(true),
        ..addressed(channel)
    };
    let content = &message.spec.content;
    match content.overrides.get(&ProviderKind::Gateway) {
        // Content encrypted by the app server takes precedence: the app server knows its client.
        Some(own) if put_raw(own, &mut stanza) => {}
        _ => match &channel.keys {
            Some(keys) => put_sealed(seal(keys, &web_payload(channel, message))?, &mut stanza),
            None => put_plain(content, &mut stanza),
        },
    }
    Some(stanza)
}

/// Creates the stanza that reports messages deleted because too many waited.
pub(super) fn deleted_stanza(channel: &McsChannelName, count: usize) -> McsData {
    let mut stanza = addressed(channel);
    put(&mut stanza, "message_type", "deleted_messages");
    put(&mut stanza, "total_deleted", &count.to_string());
    stanza
}

/// Creates the stanza that rejects a message of the device.
pub(super) fn send_error_stanza(channel: &McsChannelName, id: &str, error: &str) -> McsData {
    let mut stanza = addressed(channel);
    put(&mut stanza, "message_type", "send_error");
    put(&mut stanza, "google.message_id", id);
    put(&mut stanza, "error", error);
    stanza
}

fn addressed(channel: &McsChannelName) -> McsData {
    let mut stanza =
        McsData { from: channel.sender.clone(), category: channel.category.clone(), ..McsData::default() };
    if let Some(subtype) = &channel.subtype {
        put(&mut stanza, "subtype", subtype);
    }
    stanza
}

fn put_plain(content: &Content, stanza: &mut McsData) {
    for (key, value) in &content.data {
        put(stanza, key, value);
    }
    let Some(shown) = &content.notification else { return };
    // FCM's SDK recognizes a notification by this field.
    put(stanza, "gcm.notification.e", "1");
    let parts = [("title", &shown.title), ("body", &shown.body), ("image", &shown.image)];
    for (name, value) in parts {
        if let Some(value) = value {
            put(stanza, &format!("gcm.notification.{name}"), value);
        }
    }
}

/// Adds encrypted content.
fn put_sealed(sealed: McsSealed, stanza: &mut McsData) {
    stanza.raw_data = Some(sealed.body);
    put(stanza, "content-encoding", "aesgcm");
    put(stanza, "crypto-key", &format!("dh={}", URL_SAFE.encode(sealed.public_key)));
    put(stanza, "encryption", &format!("salt={}", URL_SAFE.encode(sealed.salt)));
}

/// Writes the payload in the format of FCM's web clients: data and notification as separate fields of one JSON object.
fn web_payload(channel: &McsChannelName, message: &Message) -> Vec<u8> {
    let content = &message.spec.content;
    let mut payload = Map::new();
    payload.insert("from".to_owned(), channel.sender.as_str().into());
    payload.insert("fcmMessageId".to_owned(), message.id.to_string().into());
    payload.insert("priority".to_owned(), json!(message.spec.priority));
    if let Some(key) = &message.spec.collapse_key {
        payload.insert("collapse_key".to_owned(), key.as_str().into());
    }
    if let Some(shown) = &content.notification {
        payload.insert("notification".to_owned(), json!(shown));
    }
    if !content.data.is_empty() {
        payload.insert("data".to_owned(), json!(content.data));
    }
    Value::Object(payload).to_string().into_bytes()
}

/// Adds bytes encrypted by the app server; returns false if there are none.
fn put_raw(own: &Map<String, Value>, stanza: &mut McsData) -> bool {
    let text = |names: &[&str]| names.iter().find_map(|name| own.get(*name)?.as_str());
    let Some(raw) = text(&["raw"]).and_then(unbase64) else { return false };
    stanza.raw_data = Some(raw);
    if let Some(encoding) = text(&["encoding", "content-encoding"]) {
        put(stanza, "content-encoding", encoding);
    }
    // Clients of FCM strip "dh=" and "salt=" and require the padding, so other parameters of the app server are left out.
    if let Some(key) = text(&["crypto_key", "crypto-key"]).and_then(|header| parameter(header, "dh")) {
        put(stanza, "crypto-key", &format!("dh={key}"));
    }
    if let Some(salt) = text(&["encryption"]).and_then(|header| parameter(header, "salt")) {
        put(stanza, "encryption", &format!("salt={salt}"));
    }
    true
}

/// Returns a parameter of a header of draft-ietf-webpush-encryption, as padded base64url.
fn parameter(header: &str, name: &str) -> Option<String> {
    let parts = header.split([';', ',']).filter_map(|part| part.trim().split_once('='));
    let mut named = parts.filter(|(key, _)| key.eq_ignore_ascii_case(name));
    named.next().and_then(|(_, value)| unbase64(value.trim_matches('"'))).map(|bytes| URL_SAFE.encode(bytes))
}

/// Decodes either alphabet of base64, padded or not.
pub(super) fn unbase64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    URL_SAFE_NO_PAD.decode(text).or_else(|_| STANDARD_NO_PAD.decode(text)).ok()
}

fn put(stanza: &mut McsData, key: &str, value: &str) {
    stanza.app_data.push(McsAppData { key: key.to_owned(), value: value.to_owned() });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(own: &Value) -> McsData {
        let mut stanza = McsData::default();
        assert!(put_raw(own.as_object().expect("an object"), &mut stanza));
        stanza
    }

    fn value<'a>(stanza: &'a McsData, key: &str) -> Option<&'a str> {
        stanza.app_data.iter().find(|entry| entry.key == key).map(|entry| entry.value.as_str())
    }

    #[test]
    fn headers_of_an_app_server_become_what_clients_of_fcm_cut_up() {
        let stanza = raw(&json!({
            "raw": "AQI", "encoding": "aesgcm",
            "crypto_key": "p256ecdsa=BA; dh=_-8", "encryption": "keyid=p256dh;salt=AQ;rs=4096",
        }));
        assert_eq!(stanza.raw_data.as_deref(), Some(&[1, 2][..]));
        assert_eq!(value(&stanza, "crypto-key"), Some("dh=_-8="));
        assert_eq!(value(&stanza, "encryption"), Some("salt=AQ=="));
        assert_eq!(value(&stanza, "content-encoding"), Some("aesgcm"));
    }

    #[test]
    fn one_body_of_the_standard_needs_its_encoding_alone() {
        let stanza = raw(&json!({"raw": "+/8=", "encoding": "aes128gcm"}));
        assert_eq!(stanza.raw_data.as_deref(), Some(&[0xfb, 0xff][..]));
        assert_eq!(stanza.app_data.len(), 1);
        assert!(!put_raw(&Map::new(), &mut McsData::default()));
    }
}
