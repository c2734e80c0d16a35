//! The control routes of APNs: channels, their subscribers, and the ends of tokens.

use super::channels::MessageStorage;
use super::server::ApnsService;
use crate::control::{ControlAnswer, ControlRoutes};
use crate::device::TokenEnd;
use crate::observer::token_hash;
use http::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChannelCreation {
    bundle: String,
    #[serde(default)]
    policy: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Subscription {
    channel: String,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Expiry {
    since_ms: Option<u64>,
    reason: TokenEnd,
}

impl ControlRoutes for ApnsService {
    fn route(&self, method: &str, segments: &[&str], body: &[u8]) -> Option<ControlAnswer> {
        match (method, segments) {
            ("POST", ["channels"]) => Some(self.create_channel(body)),
            ("POST", ["device", token, "subscribe"]) => Some(self.subscribe(token, body)),
            ("POST", ["device", token, "expire"]) => Some(self.expire(token, body)),
            _ => None,
        }
    }
}

impl ApnsService {
    fn create_channel(&self, body: &[u8]) -> ControlAnswer {
        let wanted: ChannelCreation = parse(body)?;
        let storage = MessageStorage::of_number(wanted.policy);
        let storage = storage.ok_or_else(|| refusal(StatusCode::BAD_REQUEST, "a policy is 0 or 1"))?;
        let id = self.channels.create(&wanted.bundle, storage);
        let id = id.ok_or_else(|| refusal(StatusCode::CONFLICT, "the app has its 10,000 channels"))?;
        Ok(json!({"channel": id}))
    }

    fn subscribe(&self, token: &str, body: &[u8]) -> ControlAnswer {
        let wanted: Subscription = parse(body)?;
        let device = token_hash(token.as_bytes());
        if !self.devices.is_registered(device) {
            return Err(unknown_device());
        }
        if !self.channels.subscribe(&wanted.channel, device) {
            return Err(refusal(StatusCode::NOT_FOUND, "no app has this channel"));
        }
        Ok(json!({}))
    }

    fn expire(&self, token: &str, body: &[u8]) -> ControlAnswer {
        let expiry: Expiry = if body.is_empty() { Expiry::default() } else { parse(body)? };
        if self.devices.end(token, expiry.since_ms, expiry.reason) {
            Ok(json!({}))
        } else {
            Err(unknown_device())
        }
    }
}

fn unknown_device() -> (StatusCode, String) {
    refusal(StatusCode::NOT_FOUND, "no device has registered with this token")
}

fn refusal(status: StatusCode, sentence: &str) -> (StatusCode, String) {
    (status, sentence.to_owned())
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, (StatusCode, String)> {
    serde_json::from_slice(body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))
}
