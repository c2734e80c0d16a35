//! The request of `messages:send`, with names in one spelling.

use serde_json::{Map, Value};
use stentor_providers::fcm::address::is_installation_id;
use stentor_wire::json::{LostNumber, lost_number};

use super::rpc_status::RpcStatus;
use crate::decode::without_mark;
use crate::front::gcm_http;
use crate::front::nulls::drop_nulls;

/// A JSON object.
pub(super) type FcmFields = Map<String, Value>;

/// Fields of a message; the first four are its targets.
const MESSAGE_FIELDS: &[&str] = &[
    "token",
    "fid",
    "topic",
    "condition",
    "name",
    "data",
    "notification",
    "android",
    "androidV2",
    "apns",
    "webpush",
    "fcmOptions",
];
const TARGET_FIELDS: &[&str] = &["token", "fid", "topic", "condition"];
/// Parts of a message that are typed at all depths, each with its fields that hold names of the app's own.
const TYPED: &[(&str, &[&str])] = &[
    ("notification", &[]),
    ("android", &["data"]),
    ("androidV2", &["data"]),
    ("apns", &["headers", "payload"]),
    ("webpush", &["headers", "data", "notification"]),
    ("fcmOptions", &[]),
];

/// The target of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FcmTarget {
    /// A token or an installation id.
    Token(String),
    /// A device group by its key.
    Group(String),
    /// A topic by its name.
    Topic(String),
    /// A condition over topics.
    Condition(String),
}

/// A parsed request.
#[derive(Debug)]
pub(super) struct SendCall {
    pub(super) validate_only: bool,
    pub(super) fcm_target: FcmTarget,
    /// The message. Names are in camel case, except the app's own.
    pub(super) message: FcmFields,
}

impl SendCall {
    /// Parses a body. Of duplicate names the last one counts, as at FCM.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, RpcStatus> {
        let bytes = without_mark(bytes);
        let body: Value = serde_json::from_slice(bytes)
            .map_err(|_| RpcStatus::unreadable("Invalid JSON payload received. Unable to parse."))?;
        let Value::Object(mut body) = body else {
            return Err(RpcStatus::unreadable("Invalid JSON payload received. It must be an object."));
        };
        if let Some(LostNumber { path }) = lost_number(bytes) {
            return Err(RpcStatus::violation(path, "is a number of more digits than can be kept"));
        }
        drop_nulls(&mut body);
        // SDKs write names in snake case or camel case; both are accepted.
        let mut body = camel_fields(body);
        only(&body, &["validateOnly", "message"], "")?;
        let validate_only = match body.remove("validateOnly") {
            None => false,
            Some(Value::Bool(value)) => value,
            Some(_) => return Err(RpcStatus::violation("validate_only", "must be true or false")),
        };
        let Some(Value::Object(message)) = body.remove("message") else {
            return Err(RpcStatus::violation("message", "a message is required"));
        };
        let mut message = spelled(message);
        only(&message, MESSAGE_FIELDS, "message")?;
        // It is an output-only field; the value of a request is ignored.
        message.remove("name");
        Ok(Self { validate_only, fcm_target: target(&mut message)?, message })
    }
}

/// Removes the target from a message; exactly one must be given.
fn target(message: &mut FcmFields) -> Result<FcmTarget, RpcStatus> {
    let given = TARGET_FIELDS.iter().filter_map(|name| Some((*name, message.remove(*name)?)));
    let mut given: Vec<_> = given.collect();
    // A tuple is evaluated from the left: the rest is checked after the first one is taken.
    let (Some((name, value)), true) = (given.pop(), given.is_empty()) else {
        let detail = "Exactly one of token, fid, topic and condition must be given.";
        return Err(RpcStatus::invalid_argument("message", detail));
    };
    let Value::String(text) = value else {
        return Err(RpcStatus::violation(format!("message.{name}"), "must be a string"));
    };
    Ok(match name {
        "topic" => FcmTarget::Topic(text),
        "condition" => FcmTarget::Condition(text),
        // Its form is the mark by which it is sent as what it is.
        "fid" if !is_installation_id(&text) => {
            let detail = "The installation ID is not a valid Firebase installation ID";
            return Err(RpcStatus::invalid_argument("message.fid", detail));
        }
        // A device group is named in place of a token (FCM's page of device groups for this API).
        _ if gcm_http::is_key(&text) => FcmTarget::Group(text),
        _ => FcmTarget::Token(text),
    })
}

/// Refuses names that are not in the list.
pub(super) fn only(fields: &FcmFields, known: &[&str], path: &str) -> Result<(), RpcStatus> {
    let Some(name) = fields.keys().find(|name| !known.contains(&name.as_str())) else { return Ok(()) };
    let place = if path.is_empty() { String::new() } else { format!(" at '{path}'") };
    let detail = format!("Invalid JSON payload received. Unknown name \"{name}\"{place}: Cannot find field.");
    Err(RpcStatus::violation(path, detail))
}

fn spelled(message: FcmFields) -> FcmFields {
    let mut message = camel_fields(message);
    for (part, free) in TYPED {
        if let Some(Value::Object(fields)) = message.get_mut(*part) {
            *fields = deep(std::mem::take(fields), free);
        }
    }
    message
}

/// Converts names to one spelling, except below a free field, and drops nulls.
fn deep(fields: FcmFields, free: &[&str]) -> FcmFields {
    let each = camel_fields(fields).into_iter().map(|(name, value)| {
        let value = if free.contains(&name.as_str()) { value } else { deep_value(value) };
        (name, value)
    });
    each.collect()
}

fn deep_value(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(deep(fields, &[])),
        Value::Array(values) => Value::Array(values.into_iter().map(deep_value).collect()),
        other => other,
    }
}

fn camel_fields(fields: FcmFields) -> FcmFields {
    let given = fields.into_iter().filter(|(_, value)| !value.is_null());
    given.map(|(name, value)| (camel(&name), value)).collect()
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut camel, part| {
        let mut letters = part.chars();
        camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
        camel
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(message: &Value) -> Result<SendCall, RpcStatus> {
        SendCall::read(json!({"message": message}).to_string().as_bytes())
    }

    #[test]
    fn both_spellings_are_one_and_the_apps_own_names_stay() {
        let call = read(&json!({"token": "t", "data": {"my_key": "v"}, "fcm_options": {"analytics_label": "a"},
            "android": {"collapse_key": "k", "notification": {"light_settings": {"light_on_duration": "1s"}}, "data": {"a_b": "c"}},
            "apns": {"payload": {"aps": {"thread_id": 1}}, "live_activity_token": "x"}, "webpush": {"notification": {"my_field": 1}}}))
        .expect("fits");
        let expected = json!({"data": {"my_key": "v"}, "fcmOptions": {"analyticsLabel": "a"},
            "android": {"collapseKey": "k", "notification": {"lightSettings": {"lightOnDuration": "1s"}}, "data": {"a_b": "c"}},
            "apns": {"payload": {"aps": {"thread_id": 1}}, "liveActivityToken": "x"}, "webpush": {"notification": {"my_field": 1}}});
        assert_eq!(Value::Object(call.message), expected);
        assert!(read(&json!({"token": "t", "android_v2": {}})).is_ok());
    }

    #[test]
    fn exactly_one_target_is_taken() {
        assert!(read(&json!({"data": {}})).is_err());
        assert!(read(&json!({"token": "t", "topic": "a"})).is_err());
        assert!(read(&json!({"token": 7})).is_err());
        let fid = "cJ4vGd1wRk2aB-3_xYz09Q";
        let target = |message| read(&message).map(|call| call.fcm_target);
        assert_eq!(target(json!({"fid": fid, "token": null})).expect("fits"), FcmTarget::Token(fid.into()));
        assert!(target(json!({"fid": format!("{fid}:APA91b")})).is_err(), "a registration token");
        let group = read(&json!({"token": "stentor-group.YQ"})).expect("fits").fcm_target;
        assert_eq!(group, FcmTarget::Group("stentor-group.YQ".into()));
    }

    #[test]
    fn what_is_unknown_or_no_object_is_refused_and_the_last_of_two_counts() {
        assert!(read(&json!({"token": "t", "foo": 1})).is_err());
        for text in [
            "",
            "[]",
            "{\"message\":1}",
            "{\"message\":{\"token\":\"t\"},\"validateOnly\":\"yes\"}",
            "{\"a\":1}",
        ] {
            assert!(SendCall::read(text.as_bytes()).is_err(), "{text}");
        }
        let twice =
            SendCall::read(br#"{"message":{"token":"a","token":"b"},"validate_only":true}"#).expect("fits");
        assert_eq!((twice.fcm_target, twice.validate_only), (FcmTarget::Token("b".into()), true));
    }
}
