//! The FCM protocol: finds out what a request wants, asks the policy, and words the answer.

use super::FcmConfig;
use super::condition::Condition;
use super::errors::{self, violation_body};
use super::message::{self, SendRequest, Target, Violation};
use super::oauth::{BearerSession, TokenOffice, percent_decode};
use super::topics::{Parent, Query, Topics};
use crate::device::{Delivery, DeviceMessage, DeviceState, Devices, Storage, now_ms};
use crate::dice::mix;
use crate::error::EmulatorError;
use crate::json::Node;
use crate::observer::{Tally, token_hash};
use crate::policy::{Refusal, Verdict, Wait};
use crate::service::{Answer, Call, Desk, Reply, Service, Ticket};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, Response, StatusCode};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=UTF-8");
const PROJECTS_PATH: &str = "/v1/projects/";
const SEND_SUFFIX: &str = "/messages:send";
const TOKEN_PATHS: &[&str] = &["/token", "/oauth2/v4/token", "/oauth2/v3/token", "/o/oauth2/token"];

/// The FCM protocol with everything it needs.
pub(super) struct FcmService {
    desk: Arc<Desk>,
    devices: Arc<Devices>,
    office: TokenOffice,
    topics: Topics,
    config: FcmConfig,
    sessions: AtomicU64,
}

/// What a connection remembers.
pub(super) struct FcmSession {
    bearer: BearerSession,
    next_id: u64,
}

/// Why a message is refused.
enum Refused {
    /// With one of FCM's errors.
    Error(Refusal),
    /// Because the request is malformed.
    Malformed(Violation),
}

/// One attempt to send.
struct Sending<'a> {
    project: &'a str,
    hash: u64,
    name: Cow<'a, str>,
    attempt: u32,
}

impl FcmService {
    pub(super) fn new(
        config: FcmConfig,
        desk: Arc<Desk>,
        devices: Arc<Devices>,
    ) -> Result<Self, EmulatorError> {
        let office = TokenOffice::new(config.auth.clone(), config.seed)?;
        let (topics, sessions) = (Topics::default(), AtomicU64::new(0));
        Ok(Self { desk, devices, office, topics, config, sessions })
    }

    /// Answers `messages:send`.
    fn send(&self, session: &mut FcmSession, call: &Call<'_>, project: &str) -> Reply {
        if let Err(code) = self.check_caller(session, call, project) {
            return Reply::now(error_answer(&Refusal::new(code)));
        }
        let request = match Node::parse(call.body).filter(|_| !call.body_too_large) {
            Some(request) => request,
            None => return Reply::now(malformed_answer("", "the body is not JSON or too large")),
        };
        let checked = SendRequest::check(&request);
        let name = match &checked {
            Ok(sent) => target_name(sent.target),
            Err(violation) => match message::device_of(&request) {
                Some(device) => Cow::Borrowed(device),
                None => return Reply::now(malformed_answer(&violation.field, &violation.description)),
            },
        };
        let hash = token_hash(name.as_bytes());
        let attempt = self.desk.observer.as_ref().map_or(0, |observer| observer.attempt(hash));
        let sending = Sending { project, hash, name, attempt };
        match checked {
            Ok(sent) => self.decide(session, call, &sending, &sent, &request),
            Err(violation) => refuse(&sending, &Refused::Malformed(violation), Wait::None),
        }
    }

    fn check_caller(
        &self,
        session: &mut FcmSession,
        call: &Call<'_>,
        project: &str,
    ) -> Result<(), &'static str> {
        if !self.office.admits(&mut session.bearer, call.head.headers.get(AUTHORIZATION)) {
            return Err("UNAUTHENTICATED");
        }
        let projects = &self.config.projects;
        if !projects.is_empty() && !projects.iter().any(|known| known == project) {
            return Err("PERMISSION_DENIED");
        }
        Ok(())
    }

    fn decide(
        &self,
        session: &mut FcmSession,
        call: &Call<'_>,
        sending: &Sending<'_>,
        sent: &SendRequest<'_>,
        request: &Node<'_>,
    ) -> Reply {
        if matches!(sent.target, Target::Device(_)) && !self.is_live(sending.hash) {
            return refuse(sending, &Refused::Error(Refusal::new("UNREGISTERED")), Wait::None);
        }
        let decision = call.judge.decide(&sending.name, sending.hash, sending.attempt, call.number);
        match decision.verdict {
            Verdict::Error(refusal) => refuse(sending, &Refused::Error(refusal), decision.wait),
            Verdict::Reset(code) => {
                Reply { answer: Answer::Reset(code.reason()), wait: decision.wait, ticket: None }
            }
            Verdict::Accept | Verdict::Stall => {
                self.accept(session.next_id(), sending, sent, request, decision.wait)
            }
        }
    }

    fn is_live(&self, hash: u64) -> bool {
        match self.devices.state(hash, "") {
            DeviceState::Expired { .. } => false,
            DeviceState::Unknown => !self.config.strict_tokens,
            DeviceState::Live | DeviceState::OtherTopic => true,
        }
    }

    fn accept(
        &self,
        id: u64,
        sending: &Sending<'_>,
        sent: &SendRequest<'_>,
        request: &Node<'_>,
        wait: Wait,
    ) -> Reply {
        let project = sending.project;
        let (name, tally) = if sent.validate_only {
            (format!("projects/{project}/messages/fake_message_id"), Tally::ValidateOnly)
        } else {
            (format!("projects/{project}/messages/0:{id:016x}"), Tally::Accepted)
        };
        let body = Bytes::from(format!(r#"{{"name":"{name}"}}"#));
        let delivery = if sent.validate_only { None } else { self.delivery(sending, sent, request, name) };
        let ticket = Some(Ticket { token_hash: sending.hash, tally, delivery });
        Reply { answer: json_answer(StatusCode::OK, body), wait, ticket }
    }

    fn delivery(
        &self,
        sending: &Sending<'_>,
        sent: &SendRequest<'_>,
        request: &Node<'_>,
        message_id: String,
    ) -> Option<Box<Delivery>> {
        let devices = match sent.target {
            Target::Device(_) if !self.devices.is_registered(sending.hash) => return None,
            Target::Device(_) => vec![sending.hash],
            Target::Topic(topic) => self.topics.devices_where(&Condition::Topic(topic.to_owned())),
            Target::Condition(text) => self.topics.devices_where(&Condition::parse(text)?),
        };
        let until_ms = now_ms() + sent.ttl.as_millis() as u64;
        let storage = match sent.collapse_key {
            _ if sent.ttl.is_zero() => Storage::Never,
            Some(key) => Storage::Replacing { key: key.to_owned(), until_ms },
            None => Storage::Beside { until_ms },
        };
        let message = DeviceMessage {
            message_id,
            collapse_key: sent.collapse_key.map(ToOwned::to_owned),
            topic: if let Target::Topic(topic) = sent.target { Some(topic.to_owned()) } else { None },
            push_type: None,
            high_priority: sent.high_priority,
            payload: serde_json::to_value(request.field("message")).unwrap_or_default(),
        };
        Some(Box::new(Delivery { devices, message, storage }))
    }

    /// Answers everything that is not a send request.
    fn other(&self, session: &mut FcmSession, call: &Call<'_>) -> Answer {
        let path = call.head.uri.path();
        if TOKEN_PATHS.contains(&path) {
            return match self.office.grant(call.body, path) {
                Ok(body) => json_answer(StatusCode::OK, Bytes::from(body)),
                Err(denied) => json_answer(StatusCode::BAD_REQUEST, to_json(&denied)),
            };
        }
        if path.starts_with("/iid/") {
            return self.iid(session, call, path);
        }
        self.subscriptions(session, call, path).unwrap_or_else(|| error_answer(&Refusal::new("NOT_FOUND")))
    }

    /// Answers `registrations/{token}/topicSubscriptions…`; `None` when the path is another one.
    fn subscriptions(&self, session: &mut FcmSession, call: &Call<'_>, path: &str) -> Option<Answer> {
        let segments: Vec<String> =
            path.split('/').map(|part| percent_decode(part.as_bytes(), false)).collect::<Option<_>>()?;
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let ["", "v1", "projects", project, "registrations", token, "topicSubscriptions", rest @ ..] =
            segments.as_slice()
        else {
            return None;
        };
        if let Err(code) = self.check_caller(session, call, project) {
            return Some(error_answer(&Refusal::new(code)));
        }
        let topic = match rest {
            [] => None,
            [topic] => Some(*topic),
            _ => return None,
        };
        if !message::is_token(token) || !self.is_live(token_hash(token.as_bytes())) {
            return Some(error_answer(&Refusal::new("NOT_FOUND")));
        }
        let parent = Parent { project: (*project).to_owned(), token: (*token).to_owned() };
        let query = Query::parse(call.head.uri.query());
        Some(match self.topics.resource(&call.head.method, &parent, topic, &query) {
            Ok(value) => json_answer(StatusCode::OK, to_json(&value)),
            Err((code, message)) => saying(code, &message),
        })
    }

    /// Answers the older instance id service, which takes an access token or an API key.
    fn iid(&self, session: &mut FcmSession, call: &Call<'_>, path: &str) -> Answer {
        let authorization = call.head.headers.get(AUTHORIZATION);
        let has_key = authorization.is_some_and(|header| header.as_bytes().starts_with(b"key="));
        if !has_key && !self.office.admits(&mut session.bearer, authorization) {
            return error_answer(&Refusal::new("UNAUTHENTICATED"));
        }
        let is_live = |token: &str| self.is_live(token_hash(token.as_bytes()));
        let (status, value) = match (&call.head.method, path) {
            (&Method::POST, "/iid/v1:batchAdd") => self.topics.batch(true, call.body, is_live),
            (&Method::POST, "/iid/v1:batchRemove") => self.topics.batch(false, call.body, is_live),
            (&Method::GET, path) => {
                let token = path.strip_prefix("/iid/info/").unwrap_or_default();
                let token = percent_decode(token.as_bytes(), false).unwrap_or_default();
                if !message::is_token(&token) || !is_live(&token) {
                    return error_answer(&Refusal::new("NOT_FOUND"));
                }
                let details = Query::parse(call.head.uri.query()).is_true("details");
                let project = self.config.projects.first().map_or("0", String::as_str);
                (StatusCode::OK, self.topics.info(&token, project, details))
            }
            _ => return error_answer(&Refusal::new("NOT_FOUND")),
        };
        json_answer(status, to_json(&value))
    }
}

impl Service for FcmService {
    type Session = FcmSession;

    const MAX_BODY_BYTES: usize = 1024 * 1024;

    fn session(&self) -> FcmSession {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        FcmSession {
            bearer: BearerSession::default(),
            next_id: mix(now_ms() ^ mix(self.config.seed ^ number)),
        }
    }

    fn answer(&self, session: &mut FcmSession, call: Call<'_>) -> Reply {
        let path = call.head.uri.path();
        let project = path.strip_prefix(PROJECTS_PATH).and_then(|rest| rest.strip_suffix(SEND_SUFFIX));
        match project.filter(|project| call.head.method == Method::POST && is_project(project)) {
            Some(project) => self.send(session, &call, project),
            None => Reply::now(self.other(session, &call)),
        }
    }

    fn settle(&self, ticket: Ticket) {
        if let Some(observer) = &self.desk.observer {
            observer.settle(ticket.token_hash, ticket.tally);
        }
        if let Some(delivery) = ticket.delivery {
            self.devices.deliver(*delivery);
        }
    }

    fn desk(&self) -> &Desk {
        &self.desk
    }
}

impl FcmSession {
    fn next_id(&mut self) -> u64 {
        self.next_id = self.next_id.wrapping_add(1);
        mix(self.next_id)
    }
}

fn is_project(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b':' | b'.' | b'_');
    !text.is_empty() && text.bytes().all(allowed)
}

/// Returns the name under which a target is counted and scripted.
fn target_name(target: Target<'_>) -> Cow<'_, str> {
    match target {
        Target::Device(token) => Cow::Borrowed(token),
        Target::Topic(topic) => Cow::Owned(format!("/topics/{topic}")),
        Target::Condition(condition) => Cow::Borrowed(condition),
    }
}

fn refuse(sending: &Sending<'_>, refused: &Refused, wait: Wait) -> Reply {
    let answer = match refused {
        Refused::Error(refusal) => error_answer(refusal),
        Refused::Malformed(violation) => malformed_answer(&violation.field, &violation.description),
    };
    let ticket = Some(Ticket { token_hash: sending.hash, tally: Tally::Rejected, delivery: None });
    Reply { answer, wait, ticket }
}

fn error_answer(refusal: &Refusal) -> Answer {
    let Some(row) = errors::find(&refusal.code) else {
        return json_answer(StatusCode::INTERNAL_SERVER_ERROR, Bytes::new());
    };
    let mut answer = json_answer(row.http, row.body());
    if let (Answer::Response(response, _), Some(seconds)) = (&mut answer, refusal.retry_after_s) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

fn saying(code: &str, message: &str) -> Answer {
    match errors::find(code) {
        Some(row) => json_answer(row.http, row.body_saying(message)),
        None => json_answer(StatusCode::INTERNAL_SERVER_ERROR, Bytes::new()),
    }
}

fn malformed_answer(field: &str, description: &str) -> Answer {
    json_answer(StatusCode::BAD_REQUEST, violation_body(field, description))
}

fn json_answer(status: StatusCode, body: Bytes) -> Answer {
    let mut response = Response::new(());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    Answer::Response(response, body)
}

fn to_json(value: &impl serde::Serialize) -> Bytes {
    Bytes::from(serde_json::to_vec(value).unwrap_or_default())
}
