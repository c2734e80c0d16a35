//! Messages: checked against every push service they may reach, then kept, then answered.

mod overrides;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use stentor_core::app::Scope;
use stentor_core::device::{Platform, ProviderKind, PushToken};
use stentor_core::error::Invalid;
use stentor_core::id::{AppId, CampaignId, DeviceId, MessageId};
use stentor_core::message::{Content, Message, MessageSpec, Notification, Priority, Ttl};
use stentor_core::name::{CollapseKey, ExternalId, GroupName, IdempotencyKey, TopicName};
use stentor_core::ports::store::{Idempotent, IdempotentReply, NewMessage, StoredReply};
use stentor_core::target::{Target, TokenTarget};
use stentor_core::time::Timestamp;
use stentor_core::topic::Condition;
use utoipa::ToSchema;

use self::overrides::{Overrides, WithOverrides};
use super::calendar::instant;
use super::content::AudienceReport;
use super::{Caller, Counters, ErrorCode, Problem, Service, ServiceResult};
use crate::pipeline::Crowded;
use crate::pipeline::calendar::off_the_minute;

/// Longest way into the future that a message may wait for its due time.
const SEND_AT_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);
const ACCEPTED_STATUS: u16 = 202;

/// To whom: exactly one of these.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Target)]
pub enum TargetRequest {
    /// One device.
    #[schema(value_type = String)]
    Device(DeviceId),
    /// 1 to 1,000 devices.
    #[schema(value_type = Vec<String>)]
    Devices(Vec<DeviceId>),
    /// One push token, registered or not.
    Token(TokenRequest),
    /// All devices of a person.
    User(String),
    /// All devices of a group.
    Group(String),
    /// All devices subscribed to a topic.
    Topic(String),
    /// All devices whose topics fulfil it: `'a' in topics && !('b' in topics)`.
    Condition(String),
    /// All devices of the app.
    Everyone,
}

/// A push token with what is needed to reach it.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TokenTarget)]
pub struct TokenRequest {
    /// OS family.
    #[schema(value_type = String)]
    pub platform: Platform,
    /// Adapter; the platform's usual one when absent.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub provider: Option<ProviderKind>,
    /// The address.
    pub token: String,
}

/// The visible part.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Notification)]
pub struct NotificationRequest {
    /// Title line.
    #[serde(default)]
    pub title: Option<String>,
    /// Text.
    #[serde(default)]
    pub body: Option<String>,
    /// Address of a picture.
    #[serde(default)]
    pub image: Option<String>,
}

/// A message as an app server asks for it.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
#[schema(as = MessageRequest)]
pub struct MessageRequest {
    /// To whom.
    pub target: TargetRequest,
    /// The visible part.
    #[serde(default)]
    pub notification: Option<NotificationRequest>,
    /// The invisible part: texts under names.
    #[serde(default)]
    pub data: BTreeMap<String, String>,
    /// What a push service gets in its own words, each in the field that its adapter names.
    #[serde(skip)]
    pub overrides: Overrides,
    /// Urgency for the device; `high` when absent.
    #[serde(default)]
    #[schema(value_type = Option<String>, example = "high", pattern = "^(high|normal)$")]
    pub priority: Priority,
    /// How long it may wait, counted from its due time; four weeks when absent, 0 is one attempt.
    #[serde(default)]
    #[schema(maximum = 2_419_200)]
    pub ttl_seconds: Option<u64>,
    /// Newer replaces older with the same key, per device.
    #[serde(default)]
    #[schema(max_length = 64)]
    pub collapse_key: Option<String>,
    /// Check and count, keep nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// When to send; at once when absent or past.
    #[serde(default)]
    #[schema(format = DateTime)]
    pub send_at: Option<String>,
    /// Start at the very instant. Otherwise audiences that are due on a full minute start some seconds later.
    #[serde(default)]
    pub exact: bool,
}

/// What makes a request repeatable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat {
    /// The caller's key.
    pub key: IdempotencyKey,
    /// Hash of method, path and body.
    pub request_hash: [u8; 32],
}

/// What is answered, the same for a repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The stored or new reply.
    pub reply: StoredReply,
    /// Whether it was stored before.
    pub replayed: bool,
}

/// What asking to send came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// Kept now, or before under the same idempotency key.
    Kept(Reply),
    /// Checked and counted only.
    Checked(AudienceReport),
}

/// The reply to a message that was kept.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessageAccepted)]
pub struct AcceptedReply {
    /// Its id.
    #[schema(value_type = String, example = "msg_01kb2d3v00000")]
    id: MessageId,
    /// Its campaign.
    #[schema(value_type = String, example = "cmp_01kb2d3v00000")]
    campaign: CampaignId,
    /// `running` or `scheduled`.
    state: &'static str,
}

impl TokenRequest {
    fn checked(self) -> Result<TokenTarget, Invalid> {
        let within = |invalid: Invalid| invalid.within("target.token");
        let provider = self.provider.or(stentor_providers::usual_provider(self.platform));
        let provider = provider.ok_or_else(|| {
            within(Invalid::new("provider", format!("must be given for {}", self.platform)))
        })?;
        let token = PushToken::new(self.token).map_err(within)?;
        Ok(TokenTarget { platform: self.platform, provider, token })
    }
}

impl TargetRequest {
    fn checked(self) -> Result<Target, Invalid> {
        fn renamed(invalid: Invalid) -> Invalid {
            invalid.within("target")
        }
        let target = match self {
            Self::Device(id) => Target::Device(id),
            Self::Devices(ids) => Target::Devices(ids),
            Self::Token(token) => Target::Token(token.checked()?),
            Self::User(user) => Target::User(ExternalId::new(user).map_err(renamed)?),
            Self::Group(group) => Target::Group(GroupName::new(group).map_err(renamed)?),
            Self::Topic(topic) => Target::Topic(TopicName::new(topic).map_err(renamed)?),
            Self::Condition(text) => Target::Condition(Condition::parse(&text).map_err(renamed)?),
            Self::Everyone => Target::Everyone,
        };
        target.checked()
    }
}

impl<'de> Deserialize<'de> for MessageRequest {
    fn deserialize<D: Deserializer<'de>>(request: D) -> Result<Self, D::Error> {
        let mut overrides = Overrides::new();
        let request = Self::deserialize(WithOverrides { request, found: &mut overrides })?;
        Ok(Self { overrides, ..request })
    }
}

impl MessageRequest {
    /// Checks what no push service needs to be asked about; what it gives can be kept and read back.
    pub fn spec(self) -> Result<MessageSpec, Invalid> {
        let notification = self.notification.map(|given| Notification {
            title: given.title,
            body: given.body,
            image: given.image,
        });
        MessageSpec {
            target: self.target.checked()?,
            content: Content { notification, data: self.data, overrides: self.overrides },
            priority: self.priority,
            ttl: self.ttl_seconds.map(Ttl::from_seconds).transpose()?.unwrap_or_default(),
            collapse_key: self.collapse_key.map(CollapseKey::new).transpose()?,
        }
        .checked()
        .map_err(overrides::named)
    }

    fn due_at(&self, now: Timestamp) -> ServiceResult<Timestamp> {
        let Some(text) = &self.send_at else { return Ok(now) };
        let due = instant("send_at", text)?;
        if due > now.plus(SEND_AT_MAX) {
            return Err(Problem::new(ErrorCode::LimitReached, "must be at most 366 days ahead").at("send_at"));
        }
        Ok(due.max(now))
    }
}

impl Service {
    /// Keeps a message, or only checks and counts it; a repeat gets the first reply again.
    pub async fn send(
        &self,
        caller: Caller,
        request: MessageRequest,
        repeat: Option<Repeat>,
    ) -> ServiceResult<Sent> {
        caller.require(Scope::Send)?;
        let app = caller.app();
        if let Some(reply) = self.replay(app, repeat.as_ref()).await? {
            return Ok(Sent::Kept(reply));
        }
        let now = self.now();
        let (dry_run, exact, due_at) = (request.dry_run, request.exact, request.due_at(now)?);
        let spec = request.spec()?;
        let providers = self.check_content(app, &spec).await?;
        let id = MessageId::from_raw(self.next_id(now));
        let spread = if exact || due_at <= now { Duration::ZERO } else { self.limits.start_spread };
        let due_at = off_the_minute(due_at, spec.target.class(), spread, id.raw());
        let message = Message { id, app, spec, created_at: now, due_at, occurrence: None };
        if dry_run {
            let report = self.count(&message, &providers).await.map_err(target_problem)?;
            return Ok(Sent::Checked(report));
        }
        self.refuse_when_full(app, &message.spec.target).await?;
        self.keep(message, repeat).await.map(Sent::Kept)
    }

    /// Returns one message.
    pub async fn message(&self, caller: Caller, id: MessageId) -> ServiceResult<Message> {
        caller.require(Scope::Send)?;
        Ok(self.store.message(caller.app(), id).await?)
    }

    pub(super) async fn replay(&self, app: AppId, repeat: Option<&Repeat>) -> ServiceResult<Option<Reply>> {
        let Some(repeat) = repeat else { return Ok(None) };
        match self.store.replay(app, &repeat.key, &repeat.request_hash).await? {
            Some(Idempotent::Replayed(reply)) => Ok(Some(self.replayed(reply))),
            Some(Idempotent::KeyReused) => Err(key_reused()),
            Some(Idempotent::Done(())) | None => Ok(None),
        }
    }

    /// Refuses what would only wait longer and longer, before it costs a transaction.
    async fn refuse_when_full(&self, app: AppId, target: &Target) -> ServiceResult<()> {
        if !self.belt.has_room(app) {
            let detail = "as much of this app waits to be sent as is allowed; nothing was kept";
            return self.refuse_as_full(detail.to_owned(), None);
        }
        match self.crowd_before(app, target).await? {
            Some(Crowded { provider, chunks, detail }) => {
                let why = format!(
                    "{chunks} chunks wait for {provider}, as many as may: {detail}; nothing was kept"
                );
                self.refuse_as_full(
                    why,
                    Some(format!("see the credential for {provider}: GET /v1/apps/{app}/credentials")),
                )
            }
            None => Ok(()),
        }
    }

    fn refuse_as_full(&self, detail: String, hint: Option<String>) -> ServiceResult<()> {
        Counters::add(&self.counters.messages_refused, 1);
        let problem = Problem::new(ErrorCode::QueueFull, detail);
        Err(Problem { hint: hint.map(Into::into), ..problem })
    }

    /// Finds what a message to named devices would have to wait behind without end. Audiences are expanded when there is
    /// room, and keep nobody waiting at other push services.
    async fn crowd_before(&self, app: AppId, target: &Target) -> ServiceResult<Option<Crowded>> {
        let mut crowds = self.belt.crowded(app);
        if crowds.is_empty() || !target.is_direct() {
            return Ok(None);
        }
        match target {
            Target::Token(token) => crowds.retain(|crowd| crowd.provider == token.provider),
            _ => {
                let counts = self.store.count_audience(app, target).await;
                let counts = counts.map_err(|error| target_problem(error.into()))?;
                crowds
                    .retain(|crowd| counts.iter().any(|(kind, count)| *kind == crowd.provider && *count > 0));
            }
        }
        Ok(crowds.into_iter().next())
    }

    async fn keep(&self, message: Message, repeat: Option<Repeat>) -> ServiceResult<Reply> {
        let reply = reply_to(&message);
        let idempotency = repeat.map(|Repeat { key, request_hash }| IdempotentReply {
            key,
            request_hash,
            reply: reply.clone(),
        });
        let guard = self.belt.accepting();
        let (app, due_at, is_due) = (message.app, message.due_at, message.due_at <= message.created_at);
        let answers = self.store.accept(vec![NewMessage { message, idempotency }]).await;
        match answers.into_iter().next() {
            Some(Ok(Idempotent::Done(()))) => {
                match is_due {
                    true => guard.accepted(app, due_at),
                    false => self.belt.wake(),
                }
                Counters::add(&self.counters.messages_accepted, 1);
                Ok(Reply { reply, replayed: false })
            }
            Some(Ok(Idempotent::Replayed(reply))) => Ok(self.replayed(reply)),
            Some(Ok(Idempotent::KeyReused)) => Err(key_reused()),
            Some(Err(error)) => Err(target_problem(error.into())),
            None => Err(Problem::new(ErrorCode::Internal, "the store gave no answer")),
        }
    }

    pub(super) fn replayed(&self, reply: StoredReply) -> Reply {
        Counters::add(&self.counters.replayed, 1);
        Reply { reply, replayed: true }
    }
}

fn reply_to(message: &Message) -> StoredReply {
    let state = if message.due_at > message.created_at { "scheduled" } else { "running" };
    let body = AcceptedReply { id: message.id, campaign: message.id.into(), state };
    StoredReply { status: ACCEPTED_STATUS, body: serde_json::to_string(&body).unwrap_or_default() }
}

pub(super) fn key_reused() -> Problem {
    Problem::new(ErrorCode::IdempotencyKeyReused, "the key was used before with another request")
}

/// A target that does not exist is the request's fault, not the address's.
pub(super) fn target_problem(problem: Problem) -> Problem {
    if problem.code == ErrorCode::NotFound {
        return Problem { field: Some("target".into()), ..problem };
    }
    problem
}

#[cfg(test)]
mod tests;
