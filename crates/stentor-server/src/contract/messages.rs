//! What can be asked of messages.

mod overrides;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use stentor_core::campaign::Campaign;
use stentor_core::device::{Platform, ProviderKind};
use stentor_core::id::{CampaignId, DeviceId, MessageId, ScheduleId};
use stentor_core::message::{Message, MessageSpec, Notification, Priority};
use stentor_core::target::Target;
use utoipa::ToSchema;

pub(crate) use self::overrides::named_override;
use self::overrides::{OverridesByProvider, WithOverrides};
use super::{Instant, Kept};

/// To whom: exactly one of these.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
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
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TokenTarget)]
pub struct TokenRequest {
    /// OS family.
    #[schema(value_type = String)]
    pub platform: Platform,
    /// Adapter; the platform's usual one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub provider: Option<ProviderKind>,
    /// The address.
    pub token: String,
}

/// The visible part.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Notification)]
pub struct NotificationRequest {
    /// Title line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The text below the title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Address of a picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

/// A message as an app server asks for it.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
#[schema(as = MessageRequest)]
pub struct MessageRequest {
    /// To whom.
    pub target: TargetRequest,
    /// The visible part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notification: Option<NotificationRequest>,
    /// The invisible part: texts under names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, String>,
    /// What a push service gets in its own words, each in the field that its adapter names. Written into the record all the
    /// same: two requests that differ in them are two.
    #[serde(skip_deserializing, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(ignore)]
    pub overrides: OverridesByProvider,
    /// Urgency for the device; `high` when absent.
    #[serde(default)]
    #[schema(value_type = Option<String>, example = "high", pattern = "^(high|normal)$")]
    pub priority: Priority,
    /// How long it may wait, counted from its due time; four weeks when absent, 0 is one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 2_419_200)]
    pub ttl_seconds: Option<u64>,
    /// Newer replaces older with the same key, per device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64)]
    pub collapse_key: Option<String>,
    /// Check and count, keep nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// When to send; at once when absent or past.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub send_at: Option<String>,
    /// Start at the very instant. Otherwise audiences that are due on a full minute start some seconds later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
}

impl<'de> Deserialize<'de> for MessageRequest {
    fn deserialize<D: Deserializer<'de>>(request: D) -> Result<Self, D::Error> {
        let mut overrides = OverridesByProvider::new();
        let request = Self::deserialize(WithOverrides { request, found: &mut overrides })?;
        Ok(Self { overrides, ..request })
    }
}

impl Serialize for MessageRequest {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, to)
    }
}

/// The reply to a message that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessageAccepted {
    /// Its id.
    #[schema(value_type = String, example = "msg_01kb2d3v00000")]
    pub(crate) id: MessageId,
    /// Its campaign.
    #[schema(value_type = String, example = "cmp_01kb2d3v00000")]
    pub(crate) campaign: CampaignId,
    /// `running` or `scheduled`.
    #[schema(value_type = String)]
    pub(crate) state: Cow<'static, str>,
}

/// What asking to send came to.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Sent {
    /// Kept now, or before under the same idempotency key.
    Kept(Kept<MessageAccepted>),
    /// Checked and counted only.
    Checked(DryRun),
}

/// What a dry run found out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DryRun {
    pub(crate) dry_run: bool,
    pub(crate) audience: AudienceView,
    /// Bytes of the payload, by provider.
    pub(crate) payload_bytes: BTreeMap<String, u64>,
}

/// Whom the target would reach now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Audience)]
pub struct AudienceView {
    pub(crate) total: u64,
    pub(crate) providers: BTreeMap<String, u64>,
}

/// A message in a list.
#[derive(Serialize, ToSchema)]
pub struct MessageSummary {
    #[schema(value_type = String)]
    pub(crate) id: MessageId,
    #[schema(value_type = String)]
    pub(crate) campaign: CampaignId,
    pub(crate) state: &'static str,
    pub(crate) created_at: Instant,
    pub(crate) due_at: Instant,
}

/// A piece of the messages, newest first.
#[derive(Serialize, ToSchema)]
pub struct MessageList {
    pub(crate) messages: Vec<MessageSummary>,
    /// Those whose campaign cannot be read, in the same order; absent when there is none. It can be canceled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<String>>)]
    pub(crate) damaged: Vec<MessageId>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// A message as it was asked for; of a push token only that there is one.
#[derive(Serialize, ToSchema)]
#[schema(as = Message)]
pub struct MessageView {
    #[schema(value_type = String)]
    pub(crate) id: MessageId,
    #[schema(value_type = String)]
    pub(crate) campaign: CampaignId,
    #[serde(flatten)]
    pub(crate) what: SpecView,
    pub(crate) created_at: Instant,
    pub(crate) due_at: Instant,
    /// After this it is never sent.
    pub(crate) expires_at: Instant,
    /// The schedule that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) schedule: Option<ScheduleId>,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = MessageContent)]
pub struct SpecView {
    /// As in the request.
    #[schema(value_type = Object)]
    pub(crate) target: serde_json::Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NotificationRequest>)]
    pub(crate) notification: Option<Notification>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) data: BTreeMap<String, String>,
    /// Each in the field that its adapter names.
    #[serde(flatten)]
    #[schema(ignore)]
    pub(crate) overrides: BTreeMap<String, serde_json::Map<String, serde_json::Value>>,
    #[schema(value_type = String)]
    pub(crate) priority: Priority,
    pub(crate) ttl_seconds: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) collapse_key: Option<String>,
}

impl DryRun {
    /// Shows whom a message would reach, and its bytes, by provider.
    pub(crate) fn new(
        audience: impl IntoIterator<Item = (ProviderKind, u64)>,
        payload_bytes: impl IntoIterator<Item = (ProviderKind, u64)>,
    ) -> Self {
        let by_word = |(provider, count): (ProviderKind, u64)| (provider.to_string(), count);
        let reached = audience.into_iter().filter(|(_, count)| *count > 0);
        let providers: BTreeMap<_, _> = reached.map(by_word).collect();
        let audience = AudienceView { total: providers.values().sum(), providers };
        Self { dry_run: true, audience, payload_bytes: payload_bytes.into_iter().map(by_word).collect() }
    }
}

impl From<Campaign> for MessageSummary {
    fn from(campaign: Campaign) -> Self {
        Self {
            id: campaign.id.into(),
            campaign: campaign.id,
            state: campaign.state.as_str(),
            created_at: campaign.created_at.into(),
            due_at: campaign.due_at.into(),
        }
    }
}

impl From<MessageSpec> for SpecView {
    fn from(spec: MessageSpec) -> Self {
        Self {
            target: target_view(&spec.target),
            notification: spec.content.notification,
            data: spec.content.data,
            overrides: overrides::by_field(spec.content.overrides),
            priority: spec.priority,
            ttl_seconds: spec.ttl.as_seconds(),
            collapse_key: spec.collapse_key.map(String::from),
        }
    }
}

impl From<Message> for MessageView {
    fn from(message: Message) -> Self {
        Self {
            id: message.id,
            campaign: message.id.into(),
            created_at: message.created_at.into(),
            due_at: message.due_at.into(),
            expires_at: message.expires_at().into(),
            schedule: message.occurrence.map(|(schedule, _)| schedule),
            what: message.spec.into(),
        }
    }
}

/// Writes a target as it was asked for, without a push token.
fn target_view(target: &Target) -> serde_json::Value {
    let mut value = serde_json::json!(target);
    if let Some(token) = value.get_mut("token").and_then(|token| token.get_mut("token")) {
        *token = "[redacted]".into();
    }
    value
}
