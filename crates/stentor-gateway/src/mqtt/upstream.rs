//! Publications of a device as messages to its app.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rand::Rng;
use serde_json::{Map, Value};

use super::request::MqttPublish;
use super::subscriptions::UPSTREAM_PREFIX;
use crate::limits::UPSTREAM_TTL_MAX;
use crate::upstream::UpstreamDraft;

/// The field for a payload that is not a JSON object, in base64.
const RAW_FIELD: &str = "raw";
/// The field for the rest of the topic, if there is one.
const PATH_FIELD: &str = "topic";
/// Random bytes of a generated key.
const KEY_BYTES: usize = 16;

/// Creates a message to the app; `None` for any other topic. A JSON object becomes the message's data; any other payload becomes its field
/// `raw`. The topic after `upstream/` becomes its field `topic`, unless the object has one of its own.
pub(super) fn draft_of(publish: &MqttPublish) -> Option<UpstreamDraft> {
    let path = path_of(&publish.topic)?;
    let mut data = match serde_json::from_slice(&publish.payload) {
        Ok(Value::Object(data)) => data,
        _ => Map::from_iter([(RAW_FIELD.to_owned(), STANDARD.encode(&publish.payload).into())]),
    };
    if !path.is_empty() {
        data.entry(PATH_FIELD).or_insert_with(|| path.into());
    }
    let ttl = publish.expiry_seconds.map_or(UPSTREAM_TTL_MAX, |seconds| Duration::from_secs(seconds.into()));
    Some(UpstreamDraft { key: publish.key.clone().unwrap_or_else(new_key), data, ttl })
}

/// Returns the part of a topic after `upstream/`; `None` for another topic.
fn path_of(topic: &str) -> Option<&str> {
    let rest = topic.strip_prefix(UPSTREAM_PREFIX)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

fn new_key() -> String {
    let mut bytes = [0_u8; KEY_BYTES];
    rand::rng().fill_bytes(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(topic: &str, payload: &[u8]) -> MqttPublish {
        MqttPublish {
            topic: topic.to_owned(),
            payload: payload.to_vec(),
            qos: 1,
            packet_id: 1,
            expiry_seconds: Some(60),
            key: None,
        }
    }

    fn data(topic: &str, payload: &[u8]) -> String {
        Value::Object(draft_of(&publish(topic, payload)).expect("a message").data).to_string()
    }

    #[test]
    fn an_object_is_the_data_and_anything_else_is_raw() {
        assert_eq!(data("upstream", br#"{"a":1}"#), r#"{"a":1}"#);
        assert_eq!(data("upstream/door/1", br#"{"a":1}"#), r#"{"a":1,"topic":"door/1"}"#);
        assert_eq!(data("upstream/door", br#"{"topic":"own"}"#), r#"{"topic":"own"}"#);
        assert_eq!(data("upstream", b"\xFF"), r#"{"raw":"/w=="}"#);
        assert_eq!(data("upstream", b""), r#"{"raw":""}"#);
    }

    #[test]
    fn only_upstream_leads_to_the_app() {
        for topic in ["messages/device", "topics/a", "upstreams", "a/upstream"] {
            assert_eq!(draft_of(&publish(topic, b"{}")), None, "{topic}");
        }
    }

    #[test]
    fn a_message_without_a_name_of_its_own_gets_a_new_one() {
        let one = draft_of(&publish("upstream", b"{}")).expect("a message");
        let other = draft_of(&publish("upstream", b"{}")).expect("a message");
        assert_ne!(one.key, other.key);
        let named = MqttPublish { key: Some("m-1".to_owned()), ..publish("upstream", b"{}") };
        assert_eq!(draft_of(&named).expect("a message").key, "m-1");
    }
}
