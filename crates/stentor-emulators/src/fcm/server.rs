//! The FCM protocol: routes a request, consults the policy, and builds the response.

use super::FcmConfig;
use super::answers::{error_answer, json_answer, malformed_answer};
use super::condition::FcmCondition;
use super::message::{self, MessageTarget, RequestViolation, SendRequest};
use super::oauth::TokenIssuer;
use super::topics::Topics;
use crate::access_tokens::BearerSession;
use crate::clock::now_ms;
use crate::device::{Delivery, DeviceMessage, DeviceState, Devices, Storage};
use crate::dice::SessionIds;
use crate::error::EmulatorError;
use crate::json::JsonNode;
use crate::observer::{AnswerTally, token_hash};
use crate::policy::{ScriptedAnswer, ServiceError, Wait};
use crate::service::{
    EmulatedService, EmulatorContext, PendingCount, ServiceCall, ServiceReply, TokenAttempt, WireAnswer,
};
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Method, StatusCode};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const PROJECTS_PATH: &str = "/v1/projects/";
const SEND_SUFFIX: &str = "/messages:send";
const TOKEN_FIELD: &str = "message.token";
const FID_FIELD: &str = "message.fid";

/// The FCM protocol with everything it needs.
pub(super) struct FcmService {
    context: Arc<EmulatorContext>,
    devices: Arc<Devices>,
    pub(super) issuer: TokenIssuer,
    pub(super) topics: Topics,
    pub(super) config: FcmConfig,
    sessions: AtomicU64,
}

/// The state of a connection.
pub(super) struct FcmSession {
    pub(super) bearer: BearerSession,
    ids: SessionIds,
}

/// The reason for rejecting a message.
enum FcmRefusal {
    /// One of FCM's errors.
    Error(ServiceError),
    /// Because the request is malformed.
    Malformed(RequestViolation),
}

/// One attempt to send.
struct SendAttempt<'a> {
    project: &'a str,
    hash: u64,
    name: Cow<'a, str>,
    attempt: TokenAttempt,
}

impl FcmService {
    pub(super) fn new(
        config: FcmConfig,
        context: Arc<EmulatorContext>,
        devices: Arc<Devices>,
    ) -> Result<Self, EmulatorError> {
        let issuer = TokenIssuer::new(config.vendor.auth.clone(), config.seed)?;
        let (topics, sessions) = (Topics::default(), AtomicU64::new(0));
        Ok(Self { context, devices, issuer, topics, config, sessions })
    }

    /// Answers `messages:send`.
    fn send(&self, session: &mut FcmSession, call: &ServiceCall<'_>, project: &str) -> ServiceReply {
        if let Err(code) = self.check_caller(session, call, project) {
            return ServiceReply::now(error_answer(&ServiceError::new(code)));
        }
        // A body cut off at the limit is rejected even if its received part parses.
        let request = match JsonNode::parse(call.body).filter(|_| !call.body_too_large) {
            Some(request) => request,
            None => return ServiceReply::now(malformed_answer("", "the body is not JSON or too large")),
        };
        let checked = SendRequest::check(&request);
        let name = match &checked {
            Ok(sent) => target_name(sent.target),
            // A malformed request is counted if it names a device: attempts are compared by token.
            Err(violation) => match message::device_of(&request) {
                Some(device) => Cow::Borrowed(device),
                None => return ServiceReply::now(malformed_answer(&violation.field, &violation.description)),
            },
        };
        let hash = token_hash(name.as_bytes());
        let attempt = self.context.attempt(call.judge, hash, false);
        let sending = SendAttempt { project, hash, name, attempt };
        match checked {
            Ok(sent) => self.decide(session, call, &sending, &sent, &request),
            Err(violation) => refuse(&sending, &FcmRefusal::Malformed(violation), Wait::None),
        }
    }

    pub(super) fn check_caller(
        &self,
        session: &mut FcmSession,
        call: &ServiceCall<'_>,
        project: &str,
    ) -> Result<(), &'static str> {
        if !self.issuer.admits(&mut session.bearer, call.head.headers.get(AUTHORIZATION)) {
            return Err("UNAUTHENTICATED");
        }
        let projects = &self.config.vendor.projects;
        if !projects.is_empty() && !projects.iter().any(|known| known == project) {
            return Err("PERMISSION_DENIED");
        }
        Ok(())
    }

    fn decide(
        &self,
        session: &mut FcmSession,
        call: &ServiceCall<'_>,
        sending: &SendAttempt<'_>,
        sent: &SendRequest<'_>,
        request: &JsonNode<'_>,
    ) -> ServiceReply {
        // A dead token is dead under every policy.
        if sent.target.device().is_some() && !self.is_live(sending.hash) {
            return refuse(sending, &FcmRefusal::Error(ServiceError::new("UNREGISTERED")), Wait::None);
        }
        let decision = call.judge.decide(&sending.name, sending.hash, sending.attempt.0, call.number);
        match decision.verdict {
            ScriptedAnswer::Error(refusal) => {
                refuse(sending, &FcmRefusal::Error(blaming(refusal, sent.target)), decision.wait)
            }
            ScriptedAnswer::Reset(code) => {
                ServiceReply::new(WireAnswer::Reset(code.error_code()), decision.wait, None)
            }
            ScriptedAnswer::Accept | ScriptedAnswer::Stall => {
                self.accept(session.ids.draw(), sending, sent, request, decision.wait)
            }
        }
    }

    pub(super) fn is_live(&self, hash: u64) -> bool {
        match self.devices.state(hash, "") {
            DeviceState::Expired { .. } => false,
            DeviceState::Unknown => !self.config.strict_tokens,
            DeviceState::Live | DeviceState::OtherTopic => true,
        }
    }

    fn accept(
        &self,
        id: u64,
        sending: &SendAttempt<'_>,
        sent: &SendRequest<'_>,
        request: &JsonNode<'_>,
        wait: Wait,
    ) -> ServiceReply {
        let project = sending.project;
        let (name, tally) = if sent.validate_only {
            // FCM returns `fake_message_id` for a dry run.
            (format!("projects/{project}/messages/fake_message_id"), AnswerTally::ValidateOnly)
        } else {
            (format!("projects/{project}/messages/0:{id:016x}"), AnswerTally::Accepted)
        };
        let body = Bytes::from(format!(r#"{{"name":"{name}"}}"#));
        let delivery = if sent.validate_only { None } else { self.delivery(sending, sent, request, name) };
        let ticket = Some(sending.attempt.ticket(sending.hash, tally, delivery));
        ServiceReply::new(json_answer(StatusCode::OK, body), wait, ticket)
    }

    fn delivery(
        &self,
        sending: &SendAttempt<'_>,
        sent: &SendRequest<'_>,
        request: &JsonNode<'_>,
        message_id: String,
    ) -> Option<Box<Delivery>> {
        let is_followed = self.devices.is_followed();
        let target = self.devices.keeps_messages().then(|| sending.name.clone().into_owned());
        // Nothing is copied for a token without a listener or follower, unless messages are kept.
        let tokens = match sent.target {
            MessageTarget::Device(_) | MessageTarget::Installation(_)
                if !is_followed && target.is_none() && !self.devices.is_registered(sending.hash) =>
            {
                return None;
            }
            MessageTarget::Device(address) | MessageTarget::Installation(address) => vec![address.to_owned()],
            MessageTarget::Topic(topic) => self.topics.tokens_where(&FcmCondition::Topic(topic.to_owned())),
            MessageTarget::Condition(text) => self.topics.tokens_where(&FcmCondition::parse(text)?),
        };
        let devices = tokens.iter().map(|token| token_hash(token.as_bytes())).collect();
        let tokens = if is_followed { tokens } else { Vec::new() };
        let until_ms = now_ms() + sent.ttl.as_millis() as u64;
        let storage = match sent.collapse_key {
            _ if sent.ttl.is_zero() => Storage::Never,
            Some(key) => Storage::Replacing { key: key.to_owned(), until_ms },
            None => Storage::Beside { until_ms },
        };
        let message = DeviceMessage {
            message_id,
            collapse_key: sent.collapse_key.map(ToOwned::to_owned),
            topic: if let MessageTarget::Topic(topic) = sent.target { Some(topic.to_owned()) } else { None },
            push_type: None,
            high_priority: sent.high_priority,
            payload: serde_json::json!(request.field("message")),
        };
        Some(Box::new(Delivery { devices, tokens, target, message, storage }))
    }
}

impl EmulatedService for FcmService {
    type Session = FcmSession;

    const MAX_BODY_BYTES: usize = 1024 * 1024;
    const TAKES_SCHEME_WITH_COLON: bool = true;

    fn session(&self) -> FcmSession {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        FcmSession { bearer: BearerSession::default(), ids: SessionIds::new(self.config.seed, number) }
    }

    fn answer(&self, session: &mut FcmSession, call: ServiceCall<'_>) -> ServiceReply {
        let path = call.head.uri.path();
        let project = path.strip_prefix(PROJECTS_PATH).and_then(|rest| rest.strip_suffix(SEND_SUFFIX));
        match project.filter(|project| call.head.method == Method::POST && is_project(project)) {
            Some(project) => self.send(session, &call, project),
            None => ServiceReply::now(self.other(session, &call)),
        }
    }

    fn settle(&self, ticket: PendingCount) {
        ticket.settle(&self.context, &self.devices);
    }

    fn context(&self) -> &EmulatorContext {
        &self.context
    }
}

fn is_project(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b':' | b'.' | b'_');
    !text.is_empty() && text.bytes().all(allowed)
}

/// Returns the name under which a target is counted and scripted.
fn target_name(target: MessageTarget<'_>) -> Cow<'_, str> {
    match target {
        MessageTarget::Device(address) | MessageTarget::Installation(address) => Cow::Borrowed(address),
        MessageTarget::Topic(topic) => Cow::Owned(format!("/topics/{topic}")),
        MessageTarget::Condition(condition) => Cow::Borrowed(condition),
    }
}

/// Returns a scripted error; one that blames the token blames the field that names the device.
fn blaming(mut refusal: ServiceError, target: MessageTarget<'_>) -> ServiceError {
    if matches!(target, MessageTarget::Installation(_)) && refusal.field.as_deref() == Some(TOKEN_FIELD) {
        refusal.field = Some(FID_FIELD.to_owned());
    }
    refusal
}

fn refuse(sending: &SendAttempt<'_>, refused: &FcmRefusal, wait: Wait) -> ServiceReply {
    let answer = match refused {
        FcmRefusal::Error(refusal) => error_answer(refusal),
        FcmRefusal::Malformed(violation) => malformed_answer(&violation.field, &violation.description),
    };
    let ticket = Some(sending.attempt.ticket(sending.hash, AnswerTally::Rejected, None));
    ServiceReply::new(answer, wait, ticket)
}
