//! The protocol of Push Kit: routes a request, consults the policy for each addressee, and builds the response.
//!
//! The order of the checks: path and method, access token, JSON, the message's form, each token.

use super::HmsConfig;
use super::answers::{self, HmsResults, HmsVerdict, json_answer};
use super::errors::{INVALID_TOKENS, TOKEN_EXPIRED, UNAUTHORIZED, WRONG_PARAMETER, WRONG_STRUCTURE};
use super::message::{HmsAudience, HmsMessage};
use super::oauth::{ClientTokens, HmsRefusedCaller, HmsSender};
use crate::access_tokens::BearerSession;
use crate::clock::now_ms;
use crate::device::{Delivery, DeviceMessage, DeviceState, Devices, Storage};
use crate::dice::mix;
use crate::fcm::is_token;
use crate::json::JsonNode;
use crate::observer::{AnswerTally, token_hash};
use crate::policy::{ScriptedAnswer, Wait};
use crate::service::{
    EmulatedService, EmulatorContext, PendingCount, ServiceCall, ServiceReply, TokenAttempt,
};
use http::header::AUTHORIZATION;
use http::{Method, StatusCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const TOKEN_PATHS: &[&str] = &["/oauth2/v3/token", "/oauth2/v2/token"];
const SEND_SUFFIX: &str = "/messages:send";

/// Push Kit with everything it needs.
pub(super) struct HmsService {
    context: Arc<EmulatorContext>,
    devices: Arc<Devices>,
    tokens: ClientTokens,
    projects: Vec<String>,
    strict_tokens: bool,
    ids: AtomicU64,
}

/// One attempt at one addressee.
struct HmsAttempt<'a> {
    name: &'a str,
    hash: u64,
    attempt: TokenAttempt,
    is_device: bool,
}

impl HmsService {
    pub(super) fn new(config: HmsConfig, context: Arc<EmulatorContext>, devices: Arc<Devices>) -> Self {
        Self {
            context,
            devices,
            // The clock is mixed in: a restart gives no id a second time.
            ids: AtomicU64::new(mix(now_ms() ^ mix(config.seed))),
            tokens: ClientTokens::new(config.vendor.auth, config.seed),
            projects: config.vendor.projects,
            strict_tokens: config.strict_tokens,
        }
    }

    /// Answers a message.
    fn send(
        &self,
        session: &mut BearerSession,
        call: &ServiceCall<'_>,
        sender: HmsSender<'_>,
    ) -> ServiceReply {
        let id = self.number();
        let refuse =
            |code: &str, message: Option<&str>| ServiceReply::now(answers::answer(code, message, id));
        if let Err(refused) = self.admit(session, call, sender) {
            return refuse(refused, None);
        }
        if call.body_too_large {
            return refuse(WRONG_PARAMETER, Some("the body is too large"));
        }
        let Some(request) = JsonNode::parse(call.body).filter(|node| node.entries().is_some()) else {
            return refuse(WRONG_STRUCTURE, Some("the body is not a JSON object"));
        };
        match HmsMessage::check(&request) {
            Err(violation) => refuse(violation.code, Some(&violation.description)),
            Ok(message) => self.send_checked(call, &message, id),
        }
    }

    /// Returns the code of a caller that may not send.
    fn admit(
        &self,
        session: &mut BearerSession,
        call: &ServiceCall<'_>,
        sender: HmsSender<'_>,
    ) -> Result<(), &'static str> {
        let header = call.head.headers.get(AUTHORIZATION);
        self.tokens.admit(session, header, sender).map_err(|refused| match refused {
            HmsRefusedCaller::Unknown => UNAUTHORIZED,
            HmsRefusedCaller::Expired => TOKEN_EXPIRED,
        })?;
        let is_known = match sender {
            HmsSender::Project(project) if !self.projects.is_empty() => {
                self.projects.iter().any(|known| known == project)
            }
            HmsSender::Project(_) | HmsSender::Client(_) => true,
        };
        if is_known { Ok(()) } else { Err(UNAUTHORIZED) }
    }

    fn send_checked(&self, call: &ServiceCall<'_>, message: &HmsMessage<'_>, id: u64) -> ServiceReply {
        let (names, is_device) = match &message.audience {
            HmsAudience::Tokens(tokens) => (tokens.clone(), true),
            HmsAudience::Wide(name) => (vec![name.as_str()], false),
        };
        let mut results = HmsResults::default();
        for name in &names {
            let hash = token_hash(name.as_bytes());
            let attempt = self.context.attempt(call.judge, hash, false);
            let sending = HmsAttempt { name, hash, attempt, is_device };
            let (verdict, wait) = self.decide(call, &sending);
            let count = self.count(&sending, message, &verdict, id);
            results.push(verdict, wait, count);
        }
        results.reply(&names, id)
    }

    fn decide(&self, call: &ServiceCall<'_>, sending: &HmsAttempt<'_>) -> (HmsVerdict, Wait) {
        // A token that is none stays one under every policy.
        if sending.is_device && !(is_token(sending.name) && self.is_live(sending.hash)) {
            return (HmsVerdict::Invalid, Wait::None);
        }
        let decision = call.judge.decide(sending.name, sending.hash, sending.attempt.0, call.number);
        let verdict = match decision.verdict {
            ScriptedAnswer::Error(refusal) if refusal.code == INVALID_TOKENS => HmsVerdict::Invalid,
            ScriptedAnswer::Error(refusal) => HmsVerdict::Refused(refusal),
            ScriptedAnswer::Reset(code) => HmsVerdict::Reset(code.error_code()),
            ScriptedAnswer::Accept | ScriptedAnswer::Stall => HmsVerdict::Sent,
        };
        (verdict, decision.wait)
    }

    fn is_live(&self, hash: u64) -> bool {
        match self.devices.state(hash, "") {
            DeviceState::Expired { .. } => false,
            DeviceState::Unknown => !self.strict_tokens,
            DeviceState::Live | DeviceState::OtherTopic => true,
        }
    }

    fn count(
        &self,
        sending: &HmsAttempt<'_>,
        message: &HmsMessage<'_>,
        verdict: &HmsVerdict,
        id: u64,
    ) -> PendingCount {
        let tally = match verdict {
            HmsVerdict::Sent if message.validate_only => AnswerTally::ValidateOnly,
            HmsVerdict::Sent => AnswerTally::Accepted,
            HmsVerdict::Invalid | HmsVerdict::Refused(_) | HmsVerdict::Reset(_) => AnswerTally::Rejected,
        };
        let is_seen = sending.is_device && self.devices.is_registered(sending.hash);
        let delivery = (tally == AnswerTally::Accepted && is_seen)
            .then(|| Box::new(delivery(sending.hash, message, id)));
        sending.attempt.ticket(sending.hash, tally, delivery)
    }

    /// Returns a number that is not given twice.
    fn number(&self) -> u64 {
        mix(self.ids.fetch_add(1, Ordering::Relaxed))
    }
}

fn delivery(hash: u64, message: &HmsMessage<'_>, id: u64) -> Delivery {
    let until_ms = now_ms() + message.ttl.as_millis() as u64;
    let storage = match &message.collapse_key {
        Some(key) => Storage::Replacing { key: key.clone(), until_ms },
        None => Storage::Beside { until_ms },
    };
    let seen = DeviceMessage {
        message_id: id.to_string(),
        collapse_key: message.collapse_key.clone(),
        topic: None,
        push_type: None,
        high_priority: message.is_urgent,
        payload: message.payload(),
    };
    Delivery { devices: vec![hash], tokens: Vec::new(), target: None, message: seen, storage }
}

/// Returns the sender that a path names.
fn sender(path: &str) -> Option<HmsSender<'_>> {
    let is_id = |id: &str| !id.is_empty() && !id.contains('/');
    let named = path.strip_suffix(SEND_SUFFIX)?;
    match (named.strip_prefix("/v2/"), named.strip_prefix("/v1/")) {
        (Some(project), _) if is_id(project) => Some(HmsSender::Project(project)),
        (_, Some(client)) if is_id(client) => Some(HmsSender::Client(client)),
        _ => None,
    }
}

impl EmulatedService for HmsService {
    type Session = BearerSession;

    const MAX_BODY_BYTES: usize = 1024 * 1024;

    fn session(&self) -> BearerSession {
        BearerSession::default()
    }

    fn answer(&self, session: &mut BearerSession, call: ServiceCall<'_>) -> ServiceReply {
        let path = call.head.uri.path();
        if call.head.method != Method::POST {
            return ServiceReply::now(answers::bare(StatusCode::METHOD_NOT_ALLOWED));
        }
        if TOKEN_PATHS.contains(&path) {
            return ServiceReply::now(match self.tokens.grant(call.body) {
                Ok(granted) => json_answer(StatusCode::OK, &granted),
                Err(denied) => json_answer(StatusCode::BAD_REQUEST, &denied.body()),
            });
        }
        match sender(path) {
            Some(sender) => self.send(session, &call, sender),
            None => ServiceReply::now(answers::bare(StatusCode::NOT_FOUND)),
        }
    }

    fn settle(&self, count: PendingCount) {
        count.settle(&self.context, &self.devices);
    }

    fn context(&self) -> &EmulatorContext {
        &self.context
    }
}
