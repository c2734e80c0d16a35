//! The common part of HTTP and XMPP: one message for one address is checked, judged, counted and delivered.

use super::errors::{INVALID_PACKAGE_NAME, INVALID_REGISTRATION, NOT_REGISTERED};
use super::message::{GcmAddress, GcmMessage};
use crate::clock::now_ms;
use crate::device::{Delivery, DeviceMessage, DeviceState, Devices, Storage};
use crate::dice::mix;
use crate::fcm::{FcmCondition, Topics, is_token, is_topic};
use crate::observer::{AnswerTally, token_hash};
use crate::policy::{Judge, ScriptedAnswer, ServiceError, Wait};
use crate::service::{EmulatorContext, PendingCount, TokenAttempt};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use stentor_http2_codec::frame::ErrorCode;

/// The service behind both protocols.
pub(crate) struct GcmBackend {
    pub(crate) context: Arc<EmulatorContext>,
    pub(crate) devices: Arc<Devices>,
    pub(crate) topics: Topics,
    strict_tokens: bool,
    seed: u64,
    ids: AtomicU64,
}

/// The judge that decides on a message, and the number of the message on its connection.
#[derive(Clone, Copy)]
pub(crate) struct GcmJudge<'a> {
    pub(crate) judge: &'a Judge,
    pub(crate) number: u64,
}

/// The result of one message for one address.
pub(crate) struct GcmAnswer {
    pub(crate) verdict: GcmVerdict,
    pub(crate) wait: Wait,
    /// The pending count, if there is one.
    pub(crate) count: Option<PendingCount>,
}

/// The response for one address.
pub(crate) enum GcmVerdict {
    /// Taken over, under an id; the token to use from now on, when it was replaced.
    Sent { id: String, canonical: Option<String> },
    /// Refused with an error of the service.
    Refused(ServiceError),
    /// The request is not answered.
    Reset(ErrorCode),
}

/// One attempt at one address.
struct GcmAttempt<'a> {
    address: GcmAddress<'a>,
    hash: u64,
    attempt: TokenAttempt,
}

impl GcmBackend {
    pub(crate) fn new(
        context: Arc<EmulatorContext>,
        devices: Arc<Devices>,
        strict_tokens: bool,
        seed: u64,
    ) -> Self {
        // The clock is mixed in: a restart gives no id a second time.
        let ids = AtomicU64::new(mix(now_ms() ^ mix(seed)));
        Self { context, devices, topics: Topics::default(), strict_tokens, seed, ids }
    }

    /// Decides on one message. `message` is its content, or the code with which it is rejected.
    pub(crate) fn send(
        &self,
        judge: GcmJudge<'_>,
        address: GcmAddress<'_>,
        message: Result<&GcmMessage<'_>, &'static str>,
    ) -> GcmAnswer {
        let name = address.name();
        let hash = token_hash(name.as_bytes());
        let sending = GcmAttempt { address, hash, attempt: self.context.attempt(judge.judge, hash, false) };
        let message = match message.and_then(|message| self.check(&sending, message)) {
            Ok(message) => message,
            Err(code) => return sending.refuse(ServiceError::new(code), Wait::None),
        };
        let decision = judge.judge.decide(&name, hash, sending.attempt.0, judge.number);
        match decision.verdict {
            ScriptedAnswer::Error(refusal) => sending.refuse(refusal, decision.wait),
            ScriptedAnswer::Reset(code) => {
                let verdict = GcmVerdict::Reset(code.error_code());
                GcmAnswer { verdict, wait: decision.wait, count: None }
            }
            ScriptedAnswer::Accept | ScriptedAnswer::Stall => self.accept(&sending, message, decision.wait),
        }
    }

    /// Checks for errors that GCM rejects under any policy.
    fn check<'m>(
        &self,
        sending: &GcmAttempt<'_>,
        message: &'m GcmMessage<'m>,
    ) -> Result<&'m GcmMessage<'m>, &'static str> {
        message.check_size(sending.address)?;
        match sending.address {
            GcmAddress::Token(token) if is_token(token) => {
                self.check_device(sending.hash, message.package)?
            }
            GcmAddress::Topic(topic) if is_topic(topic) => {}
            GcmAddress::Condition(condition) if FcmCondition::parse(condition).is_some() => {}
            _ => return Err(INVALID_REGISTRATION),
        }
        Ok(message)
    }

    fn check_device(&self, hash: u64, package: Option<&str>) -> Result<(), &'static str> {
        // A device keeps one name that messages must bear: a package here, a topic at APNs.
        match self.devices.state(hash, package.unwrap_or_default()) {
            DeviceState::Expired { .. } => Err(NOT_REGISTERED),
            DeviceState::OtherTopic => Err(INVALID_PACKAGE_NAME),
            DeviceState::Unknown if self.strict_tokens => Err(INVALID_REGISTRATION),
            DeviceState::Unknown | DeviceState::Live => Ok(()),
        }
    }

    fn accept(&self, sending: &GcmAttempt<'_>, message: &GcmMessage<'_>, wait: Wait) -> GcmAnswer {
        let canonical = match sending.address {
            GcmAddress::Token(_) => self.devices.replacement(sending.hash),
            GcmAddress::Topic(_) | GcmAddress::Condition(_) => None,
        };
        if message.dry_run {
            let id = "fake_message_id".to_owned();
            return sending.take(id, canonical, wait, AnswerTally::ValidateOnly, None);
        }
        let id = self.message_id(sending.address);
        let delivery = self.delivery(sending, message, &id, canonical.as_deref());
        sending.take(id, canonical, wait, AnswerTally::Accepted, delivery)
    }

    /// Builds an id in the service's form: a time and a number for a device, a number for a topic.
    fn message_id(&self, address: GcmAddress<'_>) -> String {
        let number = self.number();
        match address {
            GcmAddress::Token(_) => format!("0:{:016}%{number:016x}", now_ms() * 1000),
            // A client may read it as a signed number of 64 bits: the highest bit stays free.
            GcmAddress::Topic(_) | GcmAddress::Condition(_) => (number >> 1).to_string(),
        }
    }

    /// Returns a number that is not given twice.
    pub(crate) fn number(&self) -> u64 {
        // `mix` maps no two numbers to the same one.
        mix(self.ids.fetch_add(1, Ordering::Relaxed) ^ self.seed)
    }

    fn delivery(
        &self,
        sending: &GcmAttempt<'_>,
        message: &GcmMessage<'_>,
        id: &str,
        canonical: Option<&str>,
    ) -> Option<Box<Delivery>> {
        let devices = match sending.address {
            GcmAddress::Token(_) if !self.devices.is_registered(sending.hash) => return None,
            // A message for the old token reaches the device under its new one.
            GcmAddress::Token(token) => vec![token_hash(canonical.unwrap_or(token).as_bytes())],
            GcmAddress::Topic(topic) => self.topics.devices_where(&FcmCondition::Topic(topic.to_owned())),
            GcmAddress::Condition(text) => self.topics.devices_where(&FcmCondition::parse(text)?),
        };
        let topic =
            if let GcmAddress::Topic(topic) = sending.address { Some(topic.to_owned()) } else { None };
        let seen = DeviceMessage {
            message_id: id.to_owned(),
            collapse_key: message.collapse_key.map(ToOwned::to_owned),
            topic,
            push_type: None,
            high_priority: message.high_priority,
            payload: message.payload(),
        };
        Some(Box::new(Delivery {
            devices,
            tokens: Vec::new(),
            target: None,
            message: seen,
            storage: storage(message),
        }))
    }

    /// Counts and delivers.
    pub(crate) fn settle(&self, count: PendingCount) {
        count.settle(&self.context, &self.devices);
    }

    /// Returns true if a token may be subscribed.
    pub(crate) fn is_live(&self, token: &str) -> bool {
        self.check_device(token_hash(token.as_bytes()), None).is_ok()
    }
}

fn storage(message: &GcmMessage<'_>) -> Storage {
    let until_ms = now_ms() + message.ttl.as_millis() as u64;
    match message.collapse_key {
        _ if message.ttl.is_zero() => Storage::Never,
        Some(key) => Storage::Replacing { key: key.to_owned(), until_ms },
        None => Storage::Beside { until_ms },
    }
}

impl GcmAttempt<'_> {
    fn refuse(&self, refusal: ServiceError, wait: Wait) -> GcmAnswer {
        let count = self.attempt.ticket(self.hash, AnswerTally::Rejected, None);
        GcmAnswer { verdict: GcmVerdict::Refused(refusal), wait, count: Some(count) }
    }

    fn take(
        &self,
        id: String,
        canonical: Option<String>,
        wait: Wait,
        tally: AnswerTally,
        delivery: Option<Box<Delivery>>,
    ) -> GcmAnswer {
        let count = Some(self.attempt.ticket(self.hash, tally, delivery));
        GcmAnswer { verdict: GcmVerdict::Sent { id, canonical }, wait, count }
    }
}
