//! The protocol of RFC 8030: parses a request, consults the policy, and builds the response.

use super::WebPushConfig;
use super::content::SealedMessage;
use super::headers::{PushHeaders, TTL};
use super::keys::SubscriptionKeys;
use super::policy::{
    self, BAD_CONTENT, GONE, METHOD_NOT_ALLOWED, NOT_FOUND, THROTTLED, TOO_LARGE, UNAUTHORIZED, WRONG_KEY,
};
use super::sender_limit::SenderLimit;
use super::subscriptions::Subscriptions;
use super::synthetic::{synthetic_auth, synthetic_keys, synthetic_number};
use super::vapid::{RequestOrigin, VapidSender, VapidSession, VapidVerifier};
use crate::clock::now_ms;
use crate::device::{Delivery, DeviceMessage, DeviceState, Devices, Storage};
use crate::dice::SessionIds;
use crate::error::EmulatorError;
use crate::observer::{AnswerTally, token_hash};
use crate::policy::{ScriptedAnswer, ServiceError, Wait};
use crate::service::{
    EmulatedService, EmulatorContext, PendingCount, ServiceCall, ServiceReply, TokenAttempt, WireAnswer,
    WireTotals,
};
use crate::tls::TlsConfig;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HOST, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, Response, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MAX_BODY_BYTES: usize = 4096;
const PUSH_PATH: &str = "/push/";
const MAX_TOKEN_CHARS: usize = 512;
/// The longest time for which a message is kept: four weeks.
const MAX_TTL_S: u64 = 28 * 24 * 60 * 60;
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The push service with everything it needs.
pub(crate) struct WebPushService {
    context: Arc<EmulatorContext>,
    devices: Arc<Devices>,
    pub(super) subscriptions: Subscriptions,
    synthetic_keys: SubscriptionKeys,
    verifier: VapidVerifier,
    limit: SenderLimit,
    config: WebPushConfig,
    scheme: &'static str,
    sessions: AtomicU64,
}

/// The state of a connection.
pub(crate) struct WebPushSession {
    vapid: VapidSession,
    ids: SessionIds,
}

/// A request for one subscription.
#[derive(Clone, Copy)]
struct PushAttempt<'a> {
    token: &'a str,
    hash: u64,
    attempt: TokenAttempt,
    /// The number of the subscription if it is a synthetic one.
    synthetic: Option<u64>,
}

/// The content of a valid request.
struct CheckedPush<'a> {
    headers: PushHeaders<'a>,
    /// The encrypted message; `None` if the request has no body.
    sealed: Option<SealedMessage<'a>>,
}

/// The reason for rejecting a request, with the subscription that the rejection is counted for.
struct PushRefusal {
    counted: Option<(u64, TokenAttempt)>,
    refusal: ServiceError,
    wait: Wait,
}

impl WebPushService {
    pub(super) fn new(
        config: WebPushConfig,
        context: Arc<EmulatorContext>,
        devices: Arc<Devices>,
    ) -> Result<Self, EmulatorError> {
        let scheme = if matches!(config.tls, TlsConfig::Plaintext) { "http" } else { "https" };
        let origin = config.vendor.origin.clone();
        Ok(Self {
            subscriptions: Subscriptions::new(config.seed, scheme, origin, Arc::clone(&devices)),
            synthetic_keys: synthetic_keys(config.seed)?,
            verifier: VapidVerifier::default(),
            limit: SenderLimit::new(config.vendor.limit_per_minute),
            context,
            devices,
            config,
            scheme,
            sessions: AtomicU64::new(0),
        })
    }

    fn push(
        &self,
        session: &mut WebPushSession,
        call: &ServiceCall<'_>,
    ) -> Result<ServiceReply, PushRefusal> {
        // The path comes first: without a token, a refusal could not be counted.
        let token = path_token(call).map_err(PushRefusal::uncounted)?;
        let push = self.attempt(call, token);
        let checked = CheckedPush::read(call).map_err(|reason| push.refuse(reason))?;
        let sender = self.check_sender(&mut session.vapid, call).map_err(|reason| push.refuse(reason))?;
        self.check_subscription(push, sender.as_deref()).map_err(|reason| push.refuse(reason))?;
        self.check_limit(push, sender.as_deref())?;
        // The policy decides last: an invalid request is rejected under every policy.
        let decision = call.judge.decide(token, push.hash, push.attempt.0, call.number);
        match decision.verdict {
            ScriptedAnswer::Error(refusal) => {
                Err(PushRefusal { wait: decision.wait, ..push.refuse_with(refusal) })
            }
            ScriptedAnswer::Reset(code) => {
                Ok(ServiceReply::new(WireAnswer::Reset(code.error_code()), decision.wait, None))
            }
            ScriptedAnswer::Accept | ScriptedAnswer::Stall => {
                Ok(self.accept(session.ids.draw(), call, push, &checked, decision.wait))
            }
        }
    }

    fn attempt<'a>(&self, call: &ServiceCall<'_>, token: &'a str) -> PushAttempt<'a> {
        let hash = token_hash(token.as_bytes());
        let attempt = self.context.attempt(call.judge, hash, false);
        PushAttempt { token, hash, attempt, synthetic: synthetic_number(self.config.seed, token) }
    }

    /// Identifies the sender. Returns `None` if it does not have to identify itself and has not.
    fn check_sender(
        &self,
        session: &mut VapidSession,
        call: &ServiceCall<'_>,
    ) -> Result<Option<Arc<VapidSender>>, &'static str> {
        let headers = &call.head.headers;
        match headers.get(AUTHORIZATION) {
            None if self.config.vendor.require_vapid => Err(UNAUTHORIZED),
            None => Ok(None),
            Some(header) => {
                let origin = RequestOrigin {
                    scheme: self.scheme,
                    authority: headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default(),
                    other: self.subscriptions.configured_origin(),
                };
                self.verifier.check(session, header, origin).map(Some)
            }
        }
    }

    fn check_subscription(
        &self,
        push: PushAttempt<'_>,
        sender: Option<&VapidSender>,
    ) -> Result<(), &'static str> {
        match self.devices.state(push.hash, "") {
            DeviceState::Expired { .. } => return Err(GONE),
            DeviceState::Unknown if self.config.strict_tokens && push.synthetic.is_none() => {
                return Err(NOT_FOUND);
            }
            DeviceState::Unknown => return Ok(()),
            DeviceState::Live | DeviceState::OtherTopic => {}
        }
        let subscribed = self.subscriptions.of(push.hash, push.token);
        let only = subscribed.as_ref().and_then(|subscribed| subscribed.sender_key.as_deref());
        match (only, sender) {
            (None, _) => Ok(()),
            (Some(_), None) => Err(UNAUTHORIZED),
            (Some(key), Some(sender)) if sender.key == key => Ok(()),
            (Some(_), Some(_)) => Err(WRONG_KEY),
        }
    }

    fn check_limit(&self, push: PushAttempt<'_>, sender: Option<&VapidSender>) -> Result<(), PushRefusal> {
        let key = sender.map_or(&[][..], |sender| &sender.key);
        self.limit
            .take(key)
            .map_err(|rest_s| push.refuse_with(ServiceError::new(THROTTLED).retry_after_s(rest_s)))
    }

    fn accept(
        &self,
        id: u64,
        call: &ServiceCall<'_>,
        push: PushAttempt<'_>,
        checked: &CheckedPush<'_>,
        wait: Wait,
    ) -> ServiceReply {
        let ttl_s = checked.headers.ttl_s.min(MAX_TTL_S);
        let delivery = self.delivery(id, push, checked, ttl_s);
        let ticket = Some(push.attempt.ticket(push.hash, AnswerTally::Accepted, delivery));
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::CREATED;
        let host = call.head.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
        let location = HeaderValue::from_str(&format!("{}://{host}/message/{id:016x}", self.scheme));
        let headers = response.headers_mut();
        headers.extend(location.ok().map(|location| (LOCATION, location)));
        // A message may be kept for a shorter time than requested (RFC 8030, section 5.2).
        headers.insert(TTL, HeaderValue::from(ttl_s));
        ServiceReply::new(WireAnswer::Response(response, Bytes::new()), wait, ticket)
    }

    /// Decrypts a message for a device, or for one of the synthetic subscriptions that are looked at. A push service cannot decrypt: a
    /// message that nobody can read is accepted, delivered and counted.
    fn delivery(
        &self,
        id: u64,
        push: PushAttempt<'_>,
        checked: &CheckedPush<'_>,
        ttl_s: u64,
    ) -> Option<Box<Delivery>> {
        if !self.devices.is_registered(push.hash) {
            self.sample(push, checked);
            return None;
        }
        let subscribed = self.subscriptions.of(push.hash, push.token)?;
        let opened = checked.sealed.map(|sealed| self.count(sealed.open(&subscribed.keys, &subscribed.auth)));
        let topic = checked.headers.topic.map(ToOwned::to_owned);
        let until_ms = now_ms() + ttl_s * 1000;
        let storage = match topic.clone() {
            _ if ttl_s == 0 => Storage::Never,
            Some(key) => Storage::Replacing { key, until_ms },
            None => Storage::Beside { until_ms },
        };
        let message = DeviceMessage {
            message_id: format!("{id:016x}"),
            collapse_key: topic,
            topic: None,
            push_type: None,
            high_priority: checked.headers.is_urgent,
            payload: opened.map(payload).unwrap_or_default(),
        };
        Some(Box::new(Delivery {
            devices: vec![push.hash],
            tokens: Vec::new(),
            target: None,
            message,
            storage,
        }))
    }

    /// Decrypts the message if its subscription is one of those that are looked at.
    fn sample(&self, push: PushAttempt<'_>, checked: &CheckedPush<'_>) {
        let is_due = |n: &u64| n.checked_rem(self.config.vendor.decrypt_every) == Some(0);
        if let (Some(n), Some(sealed)) = (push.synthetic.filter(is_due), checked.sealed) {
            let auth = synthetic_auth(self.config.seed, n);
            // Nobody receives the content: only the count is of interest.
            let _ = self.count(sealed.open(&self.synthetic_keys, &auth));
        }
    }

    fn count(&self, opened: Result<Vec<u8>, &'static str>) -> Result<Vec<u8>, &'static str> {
        let totals = &self.context.content;
        WireTotals::add(if opened.is_ok() { &totals.decrypted } else { &totals.undecryptable });
        opened
    }
}

impl EmulatedService for WebPushService {
    type Session = WebPushSession;

    const MAX_BODY_BYTES: usize = MAX_BODY_BYTES;
    const KEEPS_AUTHORITY: bool = true;

    fn session(&self) -> WebPushSession {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        WebPushSession { vapid: VapidSession::default(), ids: SessionIds::new(self.config.seed, number) }
    }

    fn answer(&self, session: &mut WebPushSession, call: ServiceCall<'_>) -> ServiceReply {
        self.push(session, &call).unwrap_or_else(PushRefusal::reply)
    }

    fn settle(&self, ticket: PendingCount) {
        ticket.settle(&self.context, &self.devices);
    }

    fn context(&self) -> &EmulatorContext {
        &self.context
    }
}

impl<'a> CheckedPush<'a> {
    /// Checks headers, size and content; the error is the reason.
    fn read(call: &ServiceCall<'a>) -> Result<Self, &'static str> {
        let has_body = call.body_too_large || !call.body.is_empty();
        let headers = PushHeaders::read(&call.head.headers, has_body)?;
        if call.body_too_large {
            return Err(TOO_LARGE);
        }
        let sealed = has_body.then(|| SealedMessage::read(call.body).ok_or(BAD_CONTENT)).transpose()?;
        Ok(Self { headers, sealed })
    }
}

impl PushAttempt<'_> {
    fn refuse(self, reason: &'static str) -> PushRefusal {
        self.refuse_with(ServiceError::new(reason))
    }

    fn refuse_with(self, refusal: ServiceError) -> PushRefusal {
        PushRefusal { counted: Some((self.hash, self.attempt)), refusal, wait: Wait::None }
    }
}

impl PushRefusal {
    fn uncounted(reason: &'static str) -> Self {
        Self { counted: None, refusal: ServiceError::new(reason), wait: Wait::None }
    }

    fn reply(self) -> ServiceReply {
        let (status, body) = policy::encode(&self.refusal.code);
        let mut response = Response::new(());
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, JSON);
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("vapid"));
            }
            StatusCode::METHOD_NOT_ALLOWED => {
                headers.insert(ALLOW, HeaderValue::from_static("POST"));
            }
            _ => {}
        }
        if let Some(seconds) = self.refusal.retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        let ticket = self.counted.map(|(hash, attempt)| attempt.ticket(hash, AnswerTally::Rejected, None));
        ServiceReply::new(WireAnswer::Response(response, body), self.wait, ticket)
    }
}

/// Returns the last part of the path.
fn path_token<'a>(call: &ServiceCall<'a>) -> Result<&'a str, &'static str> {
    let token = call.head.uri.path().strip_prefix(PUSH_PATH).ok_or(NOT_FOUND)?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:=".contains(&byte);
    if token.is_empty() || token.len() > MAX_TOKEN_CHARS || !token.bytes().all(allowed) {
        return Err(NOT_FOUND);
    }
    if call.head.method == Method::POST { Ok(token) } else { Err(METHOD_NOT_ALLOWED) }
}

/// Shows the content of a message to its device: a text, other bytes, or the reason why it cannot be read.
fn payload(opened: Result<Vec<u8>, &'static str>) -> Value {
    match opened.map(String::from_utf8) {
        Ok(Ok(text)) => json!({"text": text}),
        Ok(Err(bytes)) => json!({"base64url": URL_SAFE_NO_PAD.encode(bytes.as_bytes())}),
        Err(sentence) => json!({"undecryptable": sentence}),
    }
}
