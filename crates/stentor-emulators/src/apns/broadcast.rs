//! Broadcasts: one notification for all devices that have subscribed to a channel.

use super::channels::MessageStorage;
use super::headers::{
    APNS_REQUEST_ID, APNS_UNIQUE_ID, BroadcastHeaders, LIVE_ACTIVITY_SUFFIX, read_channel_id,
};
use super::server::{ApnsRefusal, ApnsService, ApnsSession, is_json_object};
use crate::clock::now_ms;
use crate::device::{Delivery, DeviceMessage, Storage};
use crate::observer::token_hash;
use crate::service::{ServiceCall, ServiceReply, WireAnswer};
use bytes::Bytes;
use http::{HeaderValue, Method, Response};
use std::time::Duration;

/// The longest time for which a channel stores a message.
const MAX_STORAGE_S: u64 = 8 * 60 * 60;
/// The limit of a payload.
pub(super) const MAX_BROADCAST_BYTES: usize = 5120;

impl ApnsService {
    /// Answers a broadcast to a channel of this bundle id.
    pub(super) fn broadcast(
        &self,
        session: &mut ApnsSession,
        call: &ServiceCall<'_>,
        bundle: &str,
    ) -> Result<ServiceReply, ApnsRefusal> {
        if bundle.is_empty() || bundle.contains('/') {
            return Err("BadPath".into());
        }
        if call.head.method != Method::POST {
            return Err("MethodNotAllowed".into());
        }
        let channel = match read_channel_id(&call.head.headers) {
            Ok(channel) => channel,
            // The sender is checked first: without a channel, a refusal cannot be counted.
            Err(reason) => {
                return Err(self.authenticate(session, call, bundle).err().unwrap_or(reason).into());
            }
        };
        let counted = self.attempt(call, token_hash(channel.as_bytes()));
        let refuse = |reason| ApnsRefusal::counted(counted, reason);
        self.authenticate(session, call, bundle).map_err(refuse)?;
        let storage = self.channels.storage(bundle, channel).ok_or_else(|| refuse("ChannelNotRegistered"))?;
        let headers = BroadcastHeaders::read(&call.head.headers, storage == MessageStorage::Newest);
        let headers = headers.map_err(refuse)?;
        check_payload(call).map_err(refuse)?;
        self.decide(call, channel, counted, || {
            let unique = session.id();
            let delivery = self.broadcast_delivery(call, (bundle, channel), &headers, &unique);
            (accepted(session, call, unique), delivery)
        })
    }

    /// Checks the sender of a request for the channels of a bundle id; the error is the reason.
    pub(super) fn authenticate(
        &self,
        session: &mut ApnsSession,
        call: &ServiceCall<'_>,
        bundle: &str,
    ) -> Result<(), &'static str> {
        self.check_provider_token(session, call)?;
        if bundle.ends_with(LIVE_ACTIVITY_SUFFIX) {
            return Err("TopicDisallowed");
        }
        if self.knows_topic(bundle) { Ok(()) } else { Err("TopicMismatch") }
    }

    fn broadcast_delivery(
        &self,
        call: &ServiceCall<'_>,
        (bundle, channel): (&str, &str),
        headers: &BroadcastHeaders,
        unique: &HeaderValue,
    ) -> Option<Box<Delivery>> {
        let devices = self.channels.subscribers(bundle, channel);
        if devices.is_empty() && !self.devices.keeps_messages() {
            return None;
        }
        // A channel that stores nothing takes no other expiration than 0.
        let storage = match headers.expiration {
            0 => Storage::Never,
            until_s => {
                let until_s = until_s.min(now_ms() / 1000 + MAX_STORAGE_S);
                Storage::newest(channel, Some(Duration::from_secs(until_s)))
            }
        };
        let message = DeviceMessage {
            message_id: unique.to_str().unwrap_or_default().to_owned(),
            collapse_key: None,
            topic: Some(channel.to_owned()),
            push_type: Some("liveactivity".to_owned()),
            high_priority: headers.priority == 10,
            payload: serde_json::from_slice(call.body).unwrap_or_default(),
        };
        let target = self.devices.keeps_messages().then(|| channel.to_owned());
        Some(Box::new(Delivery { devices, tokens: Vec::new(), target, message, storage }))
    }
}

fn accepted(session: &mut ApnsSession, call: &ServiceCall<'_>, unique: HeaderValue) -> WireAnswer {
    let mut response = Response::new(());
    response.headers_mut().insert(APNS_REQUEST_ID, session.id_for(call, &APNS_REQUEST_ID));
    response.headers_mut().insert(APNS_UNIQUE_ID, unique);
    WireAnswer::Response(response, Bytes::new())
}

fn check_payload(call: &ServiceCall<'_>) -> Result<(), &'static str> {
    if call.body_too_large || call.body.len() > MAX_BROADCAST_BYTES {
        return Err("PayloadTooLarge");
    }
    if call.body.is_empty() {
        return Err("PayloadEmpty");
    }
    if is_json_object(call.body) { Ok(()) } else { Err("BadRequestPayload") }
}
