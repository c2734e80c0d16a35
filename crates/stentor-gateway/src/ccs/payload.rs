//! The payloads of both sides: JSON in `<gcm>`.

use serde_json::{Map, Value, json};
use stentor_core::upstream::UpstreamMessage;
use stentor_wire::json::{LostNumber, lost_number, numbers_as_texts};

use super::element::escaped;
use crate::sender_receipts::original_id;

/// The namespace of the payload, in both generations.
pub(super) const PAYLOAD_NAMESPACE: &str = "google:mobile:data";
/// Prefix of the id of a delivery receipt.
pub(super) const RECEIPT_PREFIX: &str = "dr2:";

/// The reason for rejecting a message of an app server, in the terms of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CcsRefusal {
    /// The code: `BAD_REGISTRATION`, `INVALID_JSON`, `SERVICE_UNAVAILABLE` and others.
    pub error: &'static str,
    /// A description for people.
    pub description: String,
}

impl CcsRefusal {
    /// Creates a refusal from a code and a sentence.
    #[must_use]
    pub fn new(error: &'static str, description: impl Into<String>) -> Self {
        Self { error, description: description.into() }
    }
}

/// The payload of a stanza of an app server.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CcsPayload {
    /// A message for a device, a topic or a condition.
    Send {
        /// The app server's id of the message.
        message_id: String,
        /// The target; empty for a condition.
        to: String,
        /// All its fields.
        fields: Map<String, Value>,
    },
    /// The acknowledgement of a device's message or of a receipt.
    Ack {
        /// The id of the acknowledged message.
        message_id: String,
        /// The device it came from.
        to: String,
    },
    /// The rejection of a device's message.
    Nack {
        /// The id of the rejected message.
        message_id: String,
        /// The device it came from.
        to: String,
    },
}

impl CcsPayload {
    /// Parses a payload. The error describes the defect in the protocol's words.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        // Devices receive the values of `data` as texts.
        let text = numbers_as_texts(text.as_bytes(), "data");
        let fields: Map<String, Value> =
            serde_json::from_slice(&text).map_err(|error| format!("JSON_PARSING_ERROR : {error}"))?;
        if let Some(LostNumber { path }) = lost_number(&text) {
            return Err(format!("JSON_TYPE_ERROR : {path} is a number of more digits than can be kept"));
        }
        let of = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (message_id, to, kind) = (of("message_id"), of("to"), of("message_type"));
        if message_id.is_empty() {
            return Err("JSON_PARSING_ERROR : Missing Required Field: message_id".to_owned());
        }
        match kind.as_str() {
            "" => Ok(Self::Send { message_id, to, fields }),
            "ack" => Ok(Self::Ack { message_id, to }),
            "nack" => Ok(Self::Nack { message_id, to }),
            other => Err(format!("JSON_TYPE_ERROR : message_type {other} is not known")),
        }
    }
}

/// Writes a payload as a stanza.
pub(super) fn stanza(payload: &Value) -> String {
    let text = escaped(&payload.to_string());
    format!("<message><gcm xmlns=\"{PAYLOAD_NAMESPACE}\">{text}</gcm></message>")
}

/// Returns the payload that confirms that a message is on disk.
pub(super) fn ack(to: &str, message_id: &str) -> Value {
    json!({"from": to, "message_id": message_id, "message_type": "ack"})
}

/// Returns the payload that rejects a message.
pub(super) fn nack(to: &str, message_id: &str, refusal: &CcsRefusal) -> Value {
    json!({
        "from": to, "message_id": message_id, "message_type": "nack",
        "error": refusal.error, "error_description": refusal.description,
    })
}

/// Returns the payload that announces the end of the connection.
pub(super) fn draining() -> Value {
    json!({"message_type": "control", "control_type": "CONNECTION_DRAINING"})
}

/// Returns the payload of a device's message; `token` is the device's own.
pub(super) fn upstream(message: &UpstreamMessage, token: &str) -> Value {
    let data: Value = serde_json::from_str(&message.body).unwrap_or_default();
    let payload = json!({"category": message.app, "data": data, "message_id": message.key, "from": token});
    marked(payload, message)
}

/// Marks a message that was handed over before, in an additional field that clients ignore.
fn marked(mut payload: Value, message: &UpstreamMessage) -> Value {
    if message.attempts > 0 {
        payload["again"] = true.into();
    }
    payload
}

/// Returns the id of the receipt for a message of the app server.
pub(super) fn receipt_id(original_id: &str) -> String {
    format!("{RECEIPT_PREFIX}{original_id}")
}

/// Returns the payload that reports a device's confirmation of a message; `token` is the device's own.
pub(super) fn receipt(receipt: &UpstreamMessage, token: &str, domain: &str) -> Value {
    let original_id = original_id(receipt);
    let payload = json!({
        "category": receipt.app, "from": domain, "message_id": receipt_id(&original_id), "message_type": "receipt",
        "data": {
            "message_status": "MESSAGE_SENT_TO_DEVICE", "original_message_id": original_id,
            "device_registration_id": token,
        },
    });
    marked(payload, receipt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_a_message_or_an_answer() {
        let sent = CcsPayload::read(r#"{"to":"t","message_id":"m","data":{"a":"b"}}"#).expect("a message");
        assert!(matches!(sent, CcsPayload::Send { message_id, to, .. } if message_id == "m" && to == "t"));
        let ack = CcsPayload::read(r#"{"to":"t","message_id":"m","message_type":"ack"}"#);
        assert_eq!(ack, Ok(CcsPayload::Ack { message_id: "m".to_owned(), to: "t".to_owned() }));
        for wrong in ["", "[]", "{}", r#"{"message_id":7}"#, r#"{"message_id":"m","message_type":"x"}"#] {
            assert!(CcsPayload::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_stanza_is_escaped_as_xml() {
        let text = stanza(&json!({"a": "<&>"}));
        let expected = "<message><gcm xmlns=\"google:mobile:data\">{&quot;a&quot;:&quot;&lt;&amp;&gt;&quot;}</gcm></message>";
        assert_eq!(text, expected);
    }
}
