//! The APNs protocol: parses a request, consults the policy, and builds the response.

use super::ApnsConfig;
use super::channels::Channels;
use super::headers::{APNS_ID, APNS_REQUEST_ID, APNS_UNIQUE_ID, Headers, LIVE_ACTIVITY_SUFFIX};
use super::policy;
use super::provider_token::{TokenSession, Verifier};
use crate::clock::now_ms;
use crate::device::{Delivery, DeviceMessage, DeviceState, Devices, Storage, TokenEnd};
use crate::dice::mix;
use crate::error::EmulatorError;
use crate::observer::{AnswerTally, token_hash};
use crate::policy::{ScriptedAnswer, ServiceError, Wait};
use crate::service::{
    EmulatedService, EmulatorContext, PendingCount, ServiceCall, ServiceReply, TokenAttempt, WireAnswer,
};
use bytes::Bytes;
use http::header::{AUTHORIZATION, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const MAX_PAYLOAD_BYTES: usize = 4096;
const MAX_VOIP_PAYLOAD_BYTES: usize = 5120;
const DEVICE_PATH: &str = "/3/device/";
const BROADCAST_PATH: &str = "/4/broadcasts/apps/";
const MIN_TOKEN_CHARS: usize = 64;
/// Apple documents no length: this is room enough.
const MAX_TOKEN_CHARS: usize = 4096;

/// The APNs protocol with everything it needs.
pub(crate) struct ApnsService {
    context: Arc<EmulatorContext>,
    pub(super) devices: Arc<Devices>,
    pub(super) channels: Channels,
    verifier: Verifier,
    config: ApnsConfig,
    sessions: AtomicU64,
}

/// The state of a connection.
pub(crate) struct ApnsSession {
    tokens: TokenSession,
    wedged: bool,
    next_id: u64,
}

impl ApnsService {
    pub(super) fn new(
        config: ApnsConfig,
        context: Arc<EmulatorContext>,
        devices: Arc<Devices>,
    ) -> Result<Self, EmulatorError> {
        let verifier =
            Verifier::new(&config.vendor.keys, Duration::from_secs(config.vendor.min_token_renewal_s))?;
        let channels = Channels::new(config.seed, config.vendor.max_channels);
        Ok(Self { context, devices, channels, verifier, config, sessions: AtomicU64::new(0) })
    }

    fn push(&self, session: &mut ApnsSession, call: &ServiceCall<'_>) -> Result<ServiceReply, ApnsRefusal> {
        // The path comes first: without a token, a refusal could not be counted.
        let token = device_token(call)?;
        let hash = token_hash(token.as_bytes());
        let counted = self.attempt(call, hash);
        let refuse = |reason| ApnsRefusal::counted(counted, reason);
        self.check_provider_token(session, call).map_err(refuse)?;
        let headers = Headers::read(&call.head.headers).map_err(refuse)?;
        self.check_topic(headers.topic).map_err(refuse)?;
        check_payload(call, &headers).map_err(refuse)?;
        self.check_device(hash, headers.topic).map_err(|refusal| ApnsRefusal {
            counted: Some(counted),
            refusal,
            wait: Wait::None,
        })?;
        self.decide(call, &token, counted, || {
            let delivery = self.delivery((&token, hash), &headers, call);
            (self.accept(session, call), delivery)
        })
    }

    /// Counts an attempt at a device or channel when its request arrives.
    pub(super) fn attempt(&self, call: &ServiceCall<'_>, hash: u64) -> (u64, TokenAttempt) {
        (hash, self.context.attempt(call.judge, hash, self.config.vendor.wedge_on_expired_token))
    }

    /// Follows the policy, which decides last: an invalid request is rejected under every policy.
    pub(super) fn decide(
        &self,
        call: &ServiceCall<'_>,
        token: &str,
        (hash, attempt): (u64, TokenAttempt),
        accept: impl FnOnce() -> (WireAnswer, Option<Box<Delivery>>),
    ) -> Result<ServiceReply, ApnsRefusal> {
        let decision = call.judge.decide(token, hash, attempt.0, call.number);
        match decision.verdict {
            ScriptedAnswer::Error(refusal) => {
                Err(ApnsRefusal { counted: Some((hash, attempt)), refusal, wait: decision.wait })
            }
            ScriptedAnswer::Reset(code) => {
                Ok(ServiceReply::new(WireAnswer::Reset(code.error_code()), decision.wait, None))
            }
            ScriptedAnswer::Accept | ScriptedAnswer::Stall => {
                let (answer, delivery) = accept();
                let ticket = Some(attempt.ticket(hash, AnswerTally::Accepted, delivery));
                Ok(ServiceReply::new(answer, decision.wait, ticket))
            }
        }
    }

    pub(super) fn check_provider_token(
        &self,
        session: &mut ApnsSession,
        call: &ServiceCall<'_>,
    ) -> Result<(), &'static str> {
        if !self.config.vendor.require_token {
            return Ok(());
        }
        let checked = self.verifier.check(&mut session.tokens, call.head.headers.get(AUTHORIZATION));
        if checked == Err("ExpiredProviderToken") && self.config.vendor.wedge_on_expired_token {
            session.wedged = true;
        }
        checked
    }

    fn check_topic(&self, topic: &str) -> Result<(), &'static str> {
        // Notifications of VoIP and of Live Activities go to the app's bundle id with a suffix.
        let base = topic.strip_suffix(LIVE_ACTIVITY_SUFFIX);
        let base = base.or_else(|| topic.rsplit_once(".voip").map(|(base, _)| base));
        let known = self.knows_topic(topic) || base.is_some_and(|base| self.knows_topic(base));
        if known { Ok(()) } else { Err("TopicDisallowed") }
    }

    /// Returns true if this bundle id or topic may be written to.
    pub(super) fn knows_topic(&self, topic: &str) -> bool {
        let topics = &self.config.vendor.topics;
        topics.is_empty() || topics.iter().any(|known| known == topic)
    }

    fn check_device(&self, hash: u64, topic: &str) -> Result<(), ServiceError> {
        match self.devices.state(hash, topic) {
            DeviceState::Expired { since_ms, end } => {
                let reason = match end {
                    TokenEnd::Unregistered => "Unregistered",
                    TokenEnd::ExpiredToken => "ExpiredToken",
                };
                Err(ServiceError { timestamp_ms: Some(since_ms), ..ServiceError::new(reason) })
            }
            DeviceState::OtherTopic => Err(ServiceError::new("DeviceTokenNotForTopic")),
            DeviceState::Unknown if self.config.strict_tokens => Err(ServiceError::new("BadDeviceToken")),
            DeviceState::Unknown | DeviceState::Live => Ok(()),
        }
    }

    fn delivery(
        &self,
        (token, hash): (&str, u64),
        headers: &Headers<'_>,
        call: &ServiceCall<'_>,
    ) -> Option<Box<Delivery>> {
        let target = self.devices.keeps_messages().then(|| token.to_owned());
        // A message for a token that no device here has is only counted, unless messages are kept.
        if target.is_none() && !self.devices.is_registered(hash) {
            return None;
        }
        // Only the newest notification of an app waits for a device that is away.
        let storage = match headers.expiration {
            Some(0) => Storage::Never,
            expiration => Storage::newest(headers.topic, expiration.map(Duration::from_secs)),
        };
        let message = DeviceMessage {
            message_id: self.echoed_id(call).to_owned(),
            collapse_key: headers.collapse_id.map(ToOwned::to_owned),
            topic: Some(headers.topic.to_owned()),
            push_type: headers.push_type.map(ToOwned::to_owned),
            high_priority: headers.priority == 10,
            payload: serde_json::from_slice(call.body).unwrap_or_default(),
        };
        Some(Box::new(Delivery { devices: vec![hash], tokens: Vec::new(), target, message, storage }))
    }

    fn echoed_id<'a>(&self, call: &'a ServiceCall<'_>) -> &'a str {
        call.head.headers.get(APNS_ID).and_then(|id| id.to_str().ok()).unwrap_or_default()
    }

    fn accept(&self, session: &mut ApnsSession, call: &ServiceCall<'_>) -> WireAnswer {
        let mut response = Response::new(());
        response.headers_mut().insert(APNS_ID, session.id_for(call, &APNS_ID));
        if self.config.vendor.sandbox {
            let unique = session.id();
            response.headers_mut().insert(APNS_UNIQUE_ID, unique);
        }
        WireAnswer::Response(response, Bytes::new())
    }

    /// Answers a refusal; `id` is the header by which requests of its kind are known.
    pub(super) fn refuse(
        &self,
        session: &mut ApnsSession,
        call: &ServiceCall<'_>,
        refused: ApnsRefusal,
        id: &HeaderName,
    ) -> ServiceReply {
        let ApnsRefusal { counted, refusal, wait } = refused;
        let status = policy::status(&refusal.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let timestamp_ms = refusal.timestamp_ms.unwrap_or_else(now_ms);
        let body = policy::body(&refusal.code, status, Some(timestamp_ms));
        let mut response = Response::new(());
        *response.status_mut() = status;
        response.headers_mut().insert(id, session.id_for(call, id));
        if let Some(seconds) = refusal.retry_after_s {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        let ticket = counted.map(|(hash, attempt)| attempt.ticket(hash, AnswerTally::Rejected, None));
        ServiceReply::new(WireAnswer::Response(response, body), wait, ticket)
    }
}

impl EmulatedService for ApnsService {
    type Session = ApnsSession;

    const MAX_BODY_BYTES: usize = MAX_VOIP_PAYLOAD_BYTES;

    fn session(&self) -> ApnsSession {
        // The number only has to differ between connections: it publishes no other memory.
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        ApnsSession {
            tokens: TokenSession::default(),
            wedged: false,
            next_id: mix(self.config.seed ^ mix(number)),
        }
    }

    fn answer(&self, session: &mut ApnsSession, call: ServiceCall<'_>) -> ServiceReply {
        let (id, answer) = match call.head.uri.path().strip_prefix(BROADCAST_PATH) {
            Some(bundle) => (APNS_REQUEST_ID, self.broadcast(session, &call, bundle)),
            None => (APNS_ID, self.push(session, &call)),
        };
        let reply = answer.unwrap_or_else(|refused| self.refuse(session, &call, refused, &id));
        session.hold_if_wedged(reply)
    }

    fn settle(&self, ticket: PendingCount) {
        ticket.settle(&self.context, &self.devices);
    }

    fn context(&self) -> &EmulatorContext {
        &self.context
    }
}

impl ApnsSession {
    /// Returns the request's own id in this header, letter by letter, or a new one.
    pub(super) fn id_for(&mut self, call: &ServiceCall<'_>, header: &HeaderName) -> HeaderValue {
        call.head.headers.get(header).cloned().unwrap_or_else(|| self.id())
    }

    /// A wedged connection gets every response, of any kind, only when all stalls are released.
    pub(super) fn hold_if_wedged(&self, mut reply: ServiceReply) -> ServiceReply {
        if self.wedged {
            reply.wait = Wait::Released;
        }
        reply
    }

    /// Returns a new id.
    pub(super) fn id(&mut self) -> HeaderValue {
        // The ids are drawn from the seed: a run with the same seed gives the same ids.
        let (high, low) = (mix(self.next_id), mix(!self.next_id));
        self.next_id = self.next_id.wrapping_add(1);
        let bytes = uuid::Uuid::from_u64_pair(high, low).into_bytes();
        let uuid = uuid::Builder::from_random_bytes(bytes).into_uuid();
        let mut text = uuid::Uuid::encode_buffer();
        HeaderValue::from_str(uuid.hyphenated().encode_upper(&mut text))
            .unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

/// The reason for rejecting a request, with the token that the rejection is counted for.
pub(super) struct ApnsRefusal {
    counted: Option<(u64, TokenAttempt)>,
    refusal: ServiceError,
    wait: Wait,
}

impl ApnsRefusal {
    pub(super) fn counted(counted: (u64, TokenAttempt), reason: &'static str) -> Self {
        Self { counted: Some(counted), ..Self::from(reason) }
    }
}

impl From<&'static str> for ApnsRefusal {
    fn from(reason: &'static str) -> Self {
        Self { counted: None, refusal: ServiceError::new(reason), wait: Wait::None }
    }
}

/// Returns the device token of the path in lower case.
fn device_token<'a>(call: &ServiceCall<'a>) -> Result<Cow<'a, str>, &'static str> {
    let token = call.head.uri.path().strip_prefix(DEVICE_PATH).ok_or("BadPath")?;
    if call.head.method != Method::POST {
        return Err("MethodNotAllowed");
    }
    if token.is_empty() {
        return Err("MissingDeviceToken");
    }
    if token.contains('/') {
        return Err("BadPath");
    }
    let length_ok =
        (MIN_TOKEN_CHARS..=MAX_TOKEN_CHARS).contains(&token.len()) && token.len().is_multiple_of(2);
    if !length_ok || !token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err("BadDeviceToken");
    }
    // Tokens are known by their hash: both spellings of a device must have the same.
    if token.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Ok(Cow::Owned(token.to_ascii_lowercase()));
    }
    Ok(Cow::Borrowed(token))
}

fn check_payload(call: &ServiceCall<'_>, headers: &Headers<'_>) -> Result<(), &'static str> {
    let voip = headers.push_type == Some("voip");
    let limit = if voip { MAX_VOIP_PAYLOAD_BYTES } else { MAX_PAYLOAD_BYTES };
    if call.body_too_large || call.body.len() > limit {
        return Err("PayloadTooLarge");
    }
    if call.body.is_empty() {
        return Err("PayloadEmpty");
    }
    if is_json_object(call.body) { Ok(()) } else { Err("BadMessage") }
}

pub(super) fn is_json_object(body: &[u8]) -> bool {
    // The parser skips over texts without looking at their encoding, so that is checked first.
    let text = std::str::from_utf8(body).unwrap_or_default();
    text.trim_ascii_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}
