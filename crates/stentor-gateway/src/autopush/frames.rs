//! The JSON messages of both sides.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};
use stentor_core::device::ProviderKind;
use stentor_core::message::Message;

use super::{FRAME_MAX_BYTES, UPDATES_MAX_COUNT};
use crate::stats::AutopushFailure;

/// Longest agent name that is looked up (Firefox takes 1 to 128 characters).
const AGENT_MAX_BYTES: usize = 128;
/// Longest name of a channel: a UUID in braces has 38.
const CHANNEL_MAX_BYTES: usize = 64;

/// A device's report on one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutopushUpdate {
    /// Its channel.
    pub channel: String,
    /// The message's id.
    pub version: String,
    /// The result of the delivery.
    pub result: AutopushResult,
}

/// A device's result for a delivery, with Firefox's codes. Any other code counts as delivered, as in autopush-rs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutopushResult {
    /// Passed on to its handler (100).
    Delivered,
    /// Dropped because it could not be decrypted (101).
    NotDecrypted,
    /// Dropped because it could not be passed on (102).
    NotDelivered,
}

impl AutopushResult {
    const fn of(code: u64) -> Self {
        match code {
            101 => Self::NotDecrypted,
            102 => Self::NotDelivered,
            _ => Self::Delivered,
        }
    }
}

/// A request of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutopushRequest {
    /// The first message, with the name that the agent was given before.
    Hello(Option<String>),
    /// A new subscription. With a key, only its holder may send to it.
    Register {
        /// The device's name for the subscription.
        channel: String,
        /// The sender's public key.
        key: Option<String>,
    },
    /// The end of a subscription.
    Unregister(String),
    /// Results of deliveries.
    Ack(Vec<AutopushUpdate>),
    /// The failure of a delivery's handler after its confirmation; the delivery still counts as delivered.
    Nack(AutopushFailure),
    /// A subscription to announcements of the browser's vendor, of which this server has none.
    Announcements,
    /// A ping.
    Ping,
}

/// The defect of an unreadable message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// It has too many bytes.
    #[error("a message may have at most {FRAME_MAX_BYTES} bytes")]
    TooLarge,
    /// It is no JSON object.
    #[error("a message is a JSON object")]
    NoObject,
    /// It has a type that devices do not send.
    #[error("the messageType is unknown")]
    UnknownType,
    /// A field is missing, too long, or of another type.
    #[error("the field {0} is missing or wrong")]
    WrongField(&'static str),
}

impl AutopushRequest {
    /// Reads a text frame.
    pub fn read(text: &str) -> Result<Self, FrameError> {
        if text.len() > FRAME_MAX_BYTES {
            return Err(FrameError::TooLarge);
        }
        let Ok(Value::Object(fields)) = serde_json::from_str(text) else { return Err(FrameError::NoObject) };
        // An empty object is the ping of this protocol, and its reply.
        if fields.is_empty() {
            return Ok(Self::Ping);
        }
        let kind = fields.get("messageType").and_then(Value::as_str).ok_or(FrameError::UnknownType)?;
        match kind {
            "hello" => Ok(Self::Hello(optional(&fields, "uaid", AGENT_MAX_BYTES)?)),
            "register" => {
                let key = optional(&fields, "key", 2 * CHANNEL_MAX_BYTES + AGENT_MAX_BYTES)?;
                Ok(Self::Register { channel: channel(&fields)?, key })
            }
            "unregister" => Ok(Self::Unregister(channel(&fields)?)),
            "ack" => updates(&fields).map(Self::Ack),
            "nack" => Ok(Self::Nack(AutopushFailure::of(fields.get("code").and_then(Value::as_u64)))),
            "broadcast_subscribe" => Ok(Self::Announcements),
            "ping" => Ok(Self::Ping),
            _ => Err(FrameError::UnknownType),
        }
    }
}

fn optional(
    fields: &Map<String, Value>,
    name: &'static str,
    max_bytes: usize,
) -> Result<Option<String>, FrameError> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) if text.len() <= max_bytes => Ok(Some(text.clone())),
        Some(_) => Err(FrameError::WrongField(name)),
    }
}

/// Reads a channel's name. It may consist of the characters of a UUID and other common characters of names.
fn channel(fields: &Map<String, Value>) -> Result<String, FrameError> {
    let wrong = FrameError::WrongField("channelID");
    let text = optional(fields, "channelID", CHANNEL_MAX_BYTES)?.ok_or(wrong)?;
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_{}".contains(&byte);
    if text.bytes().all(is_letter) { Ok(text) } else { Err(wrong) }
}

fn updates(fields: &Map<String, Value>) -> Result<Vec<AutopushUpdate>, FrameError> {
    let wrong = FrameError::WrongField("updates");
    let listed = fields.get("updates").and_then(Value::as_array).ok_or(wrong)?;
    if listed.len() > UPDATES_MAX_COUNT {
        return Err(wrong);
    }
    let one = |update: &Value| {
        let update = update.as_object()?;
        let version = update.get("version")?.as_str()?.to_owned();
        let result = AutopushResult::of(update.get("code").and_then(Value::as_u64).unwrap_or(100));
        Some(AutopushUpdate { channel: channel(update).ok()?, version, result })
    };
    listed.iter().map(|update| one(update).ok_or(wrong)).collect()
}

/// Writes the reply to the first message.
pub(super) fn hello(agent: &str) -> String {
    json!({"messageType": "hello", "uaid": agent, "status": 200, "use_webpush": true, "broadcasts": {}})
        .to_string()
}

/// Writes the reply to a successful registration.
pub(super) fn registered(channel: &str, endpoint: &str) -> String {
    json!({"messageType": "register", "channelID": channel, "status": 200, "pushEndpoint": endpoint})
        .to_string()
}

/// Writes the reply to a rejected registration.
pub(super) fn not_registered(channel: &str, status: u16, why: &str) -> String {
    json!({"messageType": "register", "channelID": channel, "status": status, "error": why}).to_string()
}

/// Writes the reply to the end of a subscription.
pub(super) fn unregistered(channel: &str, status: u16) -> String {
    json!({"messageType": "unregister", "channelID": channel, "status": status}).to_string()
}

/// Writes the reply to a ping.
pub(super) fn pong() -> String {
    "{}".to_owned()
}

/// Writes a delivery. A Web Push message is passed on as its sender sealed it; any other becomes JSON with the encoding `json`.
pub(super) fn notification(channel: &str, message: &Message) -> String {
    let mut frame =
        json!({"messageType": "notification", "channelID": channel, "version": message.id.to_string()});
    if let Some((data, headers)) = content(message) {
        frame["data"] = URL_SAFE_NO_PAD.encode(data).into();
        frame["headers"] = Value::Object(headers);
    }
    frame.to_string()
}

/// Returns a message's content, with the headers for decoding it; `None` for a message that only wakes the device.
fn content(message: &Message) -> Option<(Vec<u8>, Map<String, Value>)> {
    let content = &message.spec.content;
    let own = content.overrides.get(&ProviderKind::Gateway);
    let raw = own.and_then(|fields| STANDARD.decode(fields.get("raw")?.as_str()?).ok());
    let Some(raw) = raw else {
        let whole = json!({"notification": content.notification, "data": content.data});
        return Some((
            whole.to_string().into_bytes(),
            Map::from_iter([("encoding".to_owned(), "json".into())]),
        ));
    };
    let names = ["encoding", "encryption", "crypto_key"];
    let named = |name: &str| Some((name.to_owned(), own?.get(name)?.clone()));
    (!raw.is_empty()).then(|| (raw, names.into_iter().filter_map(named).collect()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_firefox_sends_is_read() {
        let channel = "d9b74644-4f97-46aa-b8fa-9393985cd6cd".to_owned();
        let read = |text: &str| AutopushRequest::read(text).expect(text);
        assert_eq!(
            read(r#"{"broadcasts":{},"messageType":"hello","use_webpush":true}"#),
            AutopushRequest::Hello(None)
        );
        let hello = r#"{"messageType":"hello","uaid":"abc","broadcasts":{"remote-settings/x":null}}"#;
        assert_eq!(read(hello), AutopushRequest::Hello(Some("abc".to_owned())));
        let register = format!(r#"{{"channelID":"{channel}","messageType":"register","key":"BA=="}}"#);
        let key = Some("BA==".to_owned());
        assert_eq!(read(&register), AutopushRequest::Register { channel: channel.clone(), key });
        let unregister = format!(r#"{{"channelID":"{channel}","messageType":"unregister","code":200}}"#);
        assert_eq!(read(&unregister), AutopushRequest::Unregister(channel.clone()));
        let ack = format!(
            r#"{{"messageType":"ack","updates":[{{"channelID":"{channel}","version":"v","code":101}},{{"channelID":"{channel}","version":"w"}}]}}"#
        );
        let update = |version: &str, result| AutopushUpdate {
            channel: channel.clone(),
            version: version.to_owned(),
            result,
        };
        let updates = vec![update("v", AutopushResult::NotDecrypted), update("w", AutopushResult::Delivered)];
        assert_eq!(read(&ack), AutopushRequest::Ack(updates));
        for (code, failure) in
            [(r#","code":301"#, "301"), (r#","code":303"#, "303"), (r#","code":"x""#, "other"), ("", "other")]
        {
            let text = format!(r#"{{"messageType":"nack","version":"v"{code}}}"#);
            assert!(matches!(read(&text), AutopushRequest::Nack(code) if code.as_str() == failure), "{text}");
        }
        assert_eq!(
            read(r#"{"messageType":"broadcast_subscribe","broadcasts":{}}"#),
            AutopushRequest::Announcements
        );
        assert_eq!(read("{}"), AutopushRequest::Ping);
    }

    #[test]
    fn what_is_no_message_is_refused_with_the_reason() {
        for (text, why) in [
            ("", FrameError::NoObject),
            ("[]", FrameError::NoObject),
            (r#"{"a":1}"#, FrameError::UnknownType),
            (r#"{"messageType":"purge"}"#, FrameError::UnknownType),
            (r#"{"messageType":"hello","uaid":5}"#, FrameError::WrongField("uaid")),
            (r#"{"messageType":"register"}"#, FrameError::WrongField("channelID")),
            (r#"{"messageType":"register","channelID":"a b"}"#, FrameError::WrongField("channelID")),
            (r#"{"messageType":"ack"}"#, FrameError::WrongField("updates")),
            (r#"{"messageType":"ack","updates":[5]}"#, FrameError::WrongField("updates")),
        ] {
            assert_eq!(AutopushRequest::read(text), Err(why), "{text}");
        }
        let many = vec![r#"{"channelID":"a","version":"v"}"#; UPDATES_MAX_COUNT + 1].join(",");
        let many = format!(r#"{{"messageType":"ack","updates":[{many}]}}"#);
        assert_eq!(AutopushRequest::read(&many), Err(FrameError::WrongField("updates")));
        assert_eq!(AutopushRequest::read(&" ".repeat(FRAME_MAX_BYTES + 1)), Err(FrameError::TooLarge));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,300}", kind in "hello|register|ack|unregister", value in "[\\[\\]{}\":,a-z0-9]{0,60}") {
            let _any = AutopushRequest::read(&text);
            let _any = AutopushRequest::read(&format!(r#"{{"messageType":"{kind}","channelID":{value},"updates":{value},"uaid":{value}}}"#));
        }
    }
}
