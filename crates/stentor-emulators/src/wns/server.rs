//! The protocol of WNS: parses a request, consults the policy, and builds the response.

use super::WnsConfig;
use super::channels::Channels;
use super::entra::{TokenEndpoint, TokenIssuer, TokenSession};
use super::errors::{
    self, BAD_REQUEST, CHANNEL_THROTTLED, DROPPED, FORBIDDEN, GONE, METHOD_NOT_ALLOWED, NOT_FOUND, TOO_LARGE,
    UNAUTHORIZED,
};
use super::headers::{WnsHeaders, WnsType};
use crate::clock::now_ms;
use crate::device::{Delivery, DeviceMessage, DeviceState, Devices, Storage};
use crate::dice::SessionIds;
use crate::fcm::percent_decode;
use crate::observer::{AnswerTally, token_hash};
use crate::policy::{ScriptedAnswer, ServiceError, Wait};
use crate::service::{
    EmulatedService, EmulatorContext, PendingCount, ServiceCall, ServiceReply, TokenAttempt, WireAnswer,
};
use crate::tls::TlsConfig;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const MAX_PAYLOAD_BYTES: usize = 5000;
const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store, no-cache");
const STATUS: HeaderName = HeaderName::from_static("x-wns-status");
/// The older name of the status, which WNS still sends.
const NOTIFICATION_STATUS: HeaderName = HeaderName::from_static("x-wns-notificationstatus");
const CONNECTION_STATUS: HeaderName = HeaderName::from_static("x-wns-deviceconnectionstatus");
const ERROR_DESCRIPTION: HeaderName = HeaderName::from_static("x-wns-error-description");
const MESSAGE_ID: HeaderName = HeaderName::from_static("x-wns-msg-id");
const DEBUG_TRACE: HeaderName = HeaderName::from_static("x-wns-debug-trace");
const CONTINUE_AFTER: HeaderName = HeaderName::from_static("x-wns-continue-after");
const CORRELATION: HeaderName = HeaderName::from_static("ms-cv");

/// WNS with everything it needs.
pub(crate) struct WnsService {
    context: Arc<EmulatorContext>,
    devices: Arc<Devices>,
    pub(super) channels: Channels,
    issuer: TokenIssuer,
    config: WnsConfig,
    sessions: AtomicU64,
}

/// The state of a connection.
pub(crate) struct WnsSession {
    token: TokenSession,
    ids: SessionIds,
}

/// A request for one channel.
#[derive(Clone)]
struct WnsAttempt {
    token: String,
    hash: u64,
    attempt: TokenAttempt,
}

/// A valid notification.
struct CheckedNotification<'a> {
    headers: WnsHeaders<'a>,
    /// True if the device is connected, or if no device here has the token.
    is_connected: bool,
    is_registered: bool,
}

/// The reason for rejecting a notification.
struct WnsRefusal {
    error: ServiceError,
    /// A sentence that says more than that of the code.
    sentence: Option<&'static str>,
    wait: Wait,
}

impl WnsService {
    pub(super) fn new(config: WnsConfig, context: Arc<EmulatorContext>, devices: Arc<Devices>) -> Self {
        let scheme = if matches!(config.tls, TlsConfig::Plaintext) { "http" } else { "https" };
        let channels = Channels::new(scheme, config.vendor.origin.clone(), Arc::clone(&devices));
        let issuer = TokenIssuer::new(&config.vendor, config.seed);
        Self { context, devices, channels, issuer, config, sessions: AtomicU64::new(0) }
    }

    /// Answers a request for an access token.
    fn grant(&self, call: &ServiceCall<'_>, endpoint: TokenEndpoint<'_>) -> WireAnswer {
        if call.head.method != Method::POST {
            return json_answer(StatusCode::METHOD_NOT_ALLOWED, &json!({"error": "invalid_request"}));
        }
        match self.issuer.grant(endpoint, call.body, call.head.headers.get(AUTHORIZATION)) {
            Ok(granted) => json_answer(StatusCode::OK, &granted),
            // The older endpoint answers 400 to everything.
            Err(denied) if endpoint == TokenEndpoint::Account => {
                json_answer(StatusCode::BAD_REQUEST, &denied.body())
            }
            Err(denied) => json_answer(denied.status, &denied.body()),
        }
    }

    fn push(&self, session: &mut WnsSession, call: &ServiceCall<'_>) -> ServiceReply {
        let id = session.ids.draw();
        // The channel comes first: without a token, a refusal could not be counted.
        let token = match channel_token(call) {
            Ok(token) => token,
            Err(code) => return ServiceReply::now(refuse(call, id, &WnsRefusal::from(code))),
        };
        let hash = token_hash(token.as_bytes());
        let attempt = self.context.attempt(call.judge, hash, false);
        let push = WnsAttempt { token, hash, attempt };
        match self.decide(session, call, &push, id) {
            Ok(reply) => reply,
            Err(refusal) => {
                let ticket = push.attempt.ticket(push.hash, AnswerTally::Rejected, None);
                ServiceReply::new(refuse(call, id, &refusal), refusal.wait, Some(ticket))
            }
        }
    }

    fn decide(
        &self,
        session: &mut WnsSession,
        call: &ServiceCall<'_>,
        push: &WnsAttempt,
        id: u64,
    ) -> Result<ServiceReply, WnsRefusal> {
        let header = call.head.headers.get(AUTHORIZATION);
        let client_id = self.issuer.admit(&mut session.token, header).ok_or(UNAUTHORIZED)?;
        let headers = WnsHeaders::read(&call.head.headers).map_err(WnsRefusal::malformed)?;
        check_payload(call)?;
        let checked = self.check_channel(push, client_id, headers)?;
        // The policy decides last: an invalid request is rejected under every policy.
        let decision = call.judge.decide(&push.token, push.hash, push.attempt.0, call.number);
        match decision.verdict {
            ScriptedAnswer::Error(error) => Err(WnsRefusal { error, sentence: None, wait: decision.wait }),
            ScriptedAnswer::Reset(code) => {
                Ok(ServiceReply::new(WireAnswer::Reset(code.error_code()), decision.wait, None))
            }
            // Nobody sees a toast later that was not seen when it came.
            _ if checked.headers.kind == WnsType::Toast && !checked.is_connected => {
                Err(WnsRefusal { wait: decision.wait, ..WnsRefusal::from(DROPPED) })
            }
            ScriptedAnswer::Accept | ScriptedAnswer::Stall => {
                let delivery = delivery(call, push, &checked, id);
                let ticket = push.attempt.ticket(push.hash, AnswerTally::Accepted, delivery);
                Ok(ServiceReply::new(accept(call, &checked, id), decision.wait, Some(ticket)))
            }
        }
    }

    fn check_channel<'a>(
        &self,
        push: &WnsAttempt,
        client_id: &str,
        headers: WnsHeaders<'a>,
    ) -> Result<CheckedNotification<'a>, WnsRefusal> {
        match self.devices.state(push.hash, client_id) {
            DeviceState::Expired { .. } => Err(WnsRefusal::from(GONE)),
            DeviceState::OtherTopic => Err(WnsRefusal::from(FORBIDDEN)),
            DeviceState::Unknown if self.config.strict_tokens => Err(WnsRefusal::from(NOT_FOUND)),
            DeviceState::Unknown => {
                Ok(CheckedNotification { headers, is_connected: true, is_registered: false })
            }
            DeviceState::Live => {
                let is_connected = self.devices.is_connected(push.hash);
                Ok(CheckedNotification { headers, is_connected, is_registered: true })
            }
        }
    }
}

impl EmulatedService for WnsService {
    type Session = WnsSession;

    const MAX_BODY_BYTES: usize = MAX_PAYLOAD_BYTES;

    fn session(&self) -> WnsSession {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        WnsSession { token: TokenSession::default(), ids: SessionIds::new(self.config.seed, number) }
    }

    fn answer(&self, session: &mut WnsSession, call: ServiceCall<'_>) -> ServiceReply {
        match TokenEndpoint::at(call.head.uri.path()) {
            Some(endpoint) => ServiceReply::now(self.grant(&call, endpoint)),
            None => self.push(session, &call),
        }
    }

    fn settle(&self, ticket: PendingCount) {
        ticket.settle(&self.context, &self.devices);
    }

    fn context(&self) -> &EmulatorContext {
        &self.context
    }
}

impl WnsRefusal {
    fn malformed(sentence: &'static str) -> Self {
        Self { sentence: Some(sentence), ..Self::from(BAD_REQUEST) }
    }
}

impl From<&'static str> for WnsRefusal {
    fn from(code: &'static str) -> Self {
        Self { error: ServiceError::new(code), sentence: None, wait: Wait::None }
    }
}

/// Returns the decoded token of the channel URI; the error is the code.
fn channel_token(call: &ServiceCall<'_>) -> Result<String, &'static str> {
    let uri = &call.head.uri;
    let query = uri.query().filter(|_| uri.path() == "/").unwrap_or_default();
    let token = query.split('&').find_map(|pair| pair.strip_prefix("token="));
    // A plus is a letter of the token: only forms write it for a space.
    let token = token.and_then(|token| percent_decode(token.as_bytes(), false));
    let token = token.filter(|token| !token.is_empty()).ok_or(NOT_FOUND)?;
    if call.head.method == Method::POST { Ok(token) } else { Err(METHOD_NOT_ALLOWED) }
}

fn check_payload(call: &ServiceCall<'_>) -> Result<(), WnsRefusal> {
    if call.body_too_large {
        return Err(WnsRefusal::from(TOO_LARGE));
    }
    if call.body.is_empty() { Err(WnsRefusal::malformed("The payload is empty.")) } else { Ok(()) }
}

/// Builds what a registered device receives.
fn delivery(
    call: &ServiceCall<'_>,
    push: &WnsAttempt,
    checked: &CheckedNotification<'_>,
    id: u64,
) -> Option<Box<Delivery>> {
    // A token that no device here has is counted, and nothing is kept for it.
    if !checked.is_registered {
        return None;
    }
    let headers = &checked.headers;
    let until =
        headers.ttl_s.map(|ttl_s| Duration::from_millis(now_ms().saturating_add(ttl_s.saturating_mul(1000))));
    let storage = match headers.is_cached && headers.ttl_s != Some(0) {
        // One notification of a type waits for an app.
        true => Storage::newest(headers.kind.word(), until),
        false => Storage::Never,
    };
    let message = DeviceMessage {
        message_id: format!("{id:016X}"),
        collapse_key: headers.tag.map(ToOwned::to_owned),
        topic: None,
        push_type: Some(headers.kind.word().to_owned()),
        high_priority: headers.priority == 1,
        payload: payload(call.body),
    };
    Some(Box::new(Delivery { devices: vec![push.hash], tokens: Vec::new(), target: None, message, storage }))
}

/// Shows a payload as a text, or as base64 if it is not one.
fn payload(body: &[u8]) -> Value {
    match std::str::from_utf8(body) {
        Ok(text) => json!({"text": text}),
        Err(_) => json!({"base64": STANDARD.encode(body)}),
    }
}

fn accept(call: &ServiceCall<'_>, checked: &CheckedNotification<'_>, id: u64) -> WireAnswer {
    let mut response = answered(call, StatusCode::OK, "received", id);
    if checked.headers.wants_status {
        let word = if checked.is_connected { "connected" } else { "disconnected" };
        response.headers_mut().insert(CONNECTION_STATUS, HeaderValue::from_static(word));
    }
    WireAnswer::Response(response, Bytes::new())
}

fn refuse(call: &ServiceCall<'_>, id: u64, refusal: &WnsRefusal) -> WireAnswer {
    let WnsRefusal { error, sentence, .. } = refusal;
    let Some(row) = errors::find(&error.code) else {
        // Never sent: a policy with a code that is unknown was refused when it was set.
        return WireAnswer::Response(Response::new(()), Bytes::new());
    };
    let mut response = answered(call, row.status, row.word, id);
    let headers = response.headers_mut();
    let sentence = HeaderValue::from_static(sentence.unwrap_or(row.sentence));
    headers.insert(ERROR_DESCRIPTION, sentence);
    match row.status {
        StatusCode::UNAUTHORIZED => {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        StatusCode::METHOD_NOT_ALLOWED => {
            headers.insert(ALLOW, HeaderValue::from_static("POST"));
        }
        _ => {}
    }
    if let Some(seconds) = error.retry_after_s {
        let name = if row.code == CHANNEL_THROTTLED { CONTINUE_AFTER } else { RETRY_AFTER };
        headers.insert(name, HeaderValue::from(seconds));
    }
    WireAnswer::Response(response, Bytes::new())
}

/// Starts a response with the headers that all responses have.
fn answered(call: &ServiceCall<'_>, status: StatusCode, word: &'static str, id: u64) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(STATUS, HeaderValue::from_static(word));
    headers.insert(NOTIFICATION_STATUS, HeaderValue::from_static(word));
    headers.insert(DEBUG_TRACE, HeaderValue::from_static("STENTOREMULATOR"));
    headers.extend(HeaderValue::from_str(&format!("{id:016X}")).map(|id| (MESSAGE_ID, id)));
    headers.extend(correlation(&call.head.headers, id).map(|vector| (CORRELATION, vector)));
    response
}

/// Returns the request's own correlation vector, or a new one.
fn correlation(headers: &HeaderMap, id: u64) -> Option<HeaderValue> {
    let own = headers.get(CORRELATION).cloned();
    own.or_else(|| HeaderValue::from_str(&format!("{}.0", STANDARD.encode(id.to_be_bytes()))).ok())
}

fn json_answer(status: StatusCode, value: &Value) -> WireAnswer {
    let mut response = Response::new(());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    WireAnswer::Response(response, Bytes::from(value.to_string()))
}
