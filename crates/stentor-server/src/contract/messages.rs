//! Messages: requests and replies.

mod overrides;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use stentor_core::campaign::Campaign;
use stentor_core::device::{Platform, ProviderKind};
use stentor_core::id::{CampaignId, DeviceId, MessageId, ScheduleId};
use stentor_core::message::{Message, MessageSpec, Notification, Priority};
use stentor_core::target::Target;
use stentor_providers::RequestPreview;
use utoipa::ToSchema;

pub(crate) use self::overrides::named_override;
use self::overrides::{OverridesByProvider, WithOverrides};
use super::{Instant, Kept};

/// The target: exactly one of these.
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
    /// All devices of a user.
    User(String),
    /// All devices of a group.
    Group(String),
    /// All devices subscribed to a topic.
    Topic(String),
    /// All devices whose topics satisfy a condition: `'a' in topics && !('b' in topics)`.
    Condition(String),
    /// All devices of the app.
    Everyone,
}

/// A push token, with its platform and adapter.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TokenTarget)]
pub struct TokenRequest {
    /// Operating system family.
    #[schema(value_type = String)]
    pub platform: Platform,
    /// Adapter for the token; the platform's usual one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub provider: Option<ProviderKind>,
    /// The push token.
    pub token: String,
}

/// The visible part of a message.
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
    /// URL of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

/// A message to send.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
#[schema(as = MessageRequest)]
pub struct MessageRequest {
    /// The devices to reach.
    pub target: TargetRequest,
    /// The visible part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notification: Option<NotificationRequest>,
    /// The invisible part: text values by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, String>,
    /// Overrides for single push services, each in the field that its adapter names. They are serialized with the record, so that two
    /// requests with different overrides are different requests.
    #[serde(skip_deserializing, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(ignore)]
    pub overrides: OverridesByProvider,
    /// Urgency for the device; `high` when absent.
    #[serde(default)]
    #[schema(value_type = Option<String>, example = "high", pattern = "^(high|normal)$")]
    pub priority: Priority,
    /// Maximum waiting time, counted from the due time; four weeks when absent. 0 allows one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// Key under which a newer message replaces an older one that still waits, per device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collapse_key: Option<String>,
    /// Check the message and count its audience, store nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Time to send; at once when absent or past.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub send_at: Option<String>,
    /// Start exactly on time. Otherwise a message to an audience that is due on a full minute starts some seconds later.
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

/// Reply to an accepted message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessageAccepted {
    /// Id of the message.
    #[schema(value_type = String, example = "msg_01kb2d3v00000")]
    pub(crate) id: MessageId,
    /// Id of its campaign.
    #[schema(value_type = String, example = "cmp_01kb2d3v00000")]
    pub(crate) campaign: CampaignId,
    /// `running` or `scheduled`.
    #[schema(value_type = String)]
    pub(crate) state: Cow<'static, str>,
}

/// Result of a send request.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Sent {
    /// Stored now, or earlier under the same idempotency key.
    Kept(Kept<MessageAccepted>),
    /// Result of a dry run.
    Checked(DryRun),
}

/// Result of a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DryRun {
    pub(crate) dry_run: bool,
    pub(crate) audience: AudienceView,
    /// Size of the payload in bytes, by provider.
    pub(crate) payload_bytes: BTreeMap<String, u64>,
    /// Request for one device of each push service, in the order of the push services.
    pub(crate) requests: Vec<PreviewView>,
}

/// Request that a message causes for one device: a POST, without the device's token and without secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RequestPreview)]
pub struct PreviewView {
    #[schema(value_type = String)]
    pub(crate) provider: String,
    pub(crate) url: String,
    pub(crate) headers: BTreeMap<String, String>,
    /// Body of the request, before it is sealed for a device.
    pub(crate) body: String,
}

/// Devices that the target reaches at present.
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

/// A page of the messages, newest first.
#[derive(Serialize, ToSchema)]
pub struct MessageList {
    pub(crate) messages: Vec<MessageSummary>,
    /// Messages whose campaign cannot be read, in the same order; absent if there are none. The campaign can be canceled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<String>>)]
    pub(crate) damaged: Vec<MessageId>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// A message as requested, with a redacted push token.
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
    /// Nothing is sent after this instant.
    pub(crate) expires_at: Instant,
    /// The schedule that created the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) schedule: Option<ScheduleId>,
}

/// Content of a message, as requested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = MessageContent)]
pub struct SpecView {
    /// The target, as in the request.
    #[schema(value_type = Object)]
    pub(crate) target: serde_json::Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NotificationRequest>)]
    pub(crate) notification: Option<Notification>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) data: BTreeMap<String, String>,
    /// Overrides for single push services, each in the field that its adapter names.
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
    /// Shows the audience and the payload size, by provider.
    pub(crate) fn new(
        audience: impl IntoIterator<Item = (ProviderKind, u64)>,
        payload_bytes: impl IntoIterator<Item = (ProviderKind, u64)>,
        requests: Vec<PreviewView>,
    ) -> Self {
        let by_word = |(provider, count): (ProviderKind, u64)| (provider.to_string(), count);
        let reached = audience.into_iter().filter(|(_, count)| *count > 0);
        let providers: BTreeMap<_, _> = reached.map(by_word).collect();
        let audience = AudienceView { total: providers.values().sum(), providers };
        let payload_bytes = payload_bytes.into_iter().map(by_word).collect();
        Self { dry_run: true, audience, payload_bytes, requests }
    }
}

impl PreviewView {
    /// Shows a request to a push service.
    pub(crate) fn new(provider: ProviderKind, preview: RequestPreview) -> Self {
        let RequestPreview { url, headers, body } = preview;
        Self { provider: provider.to_string(), url, headers: headers.into_iter().collect(), body }
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

/// Serializes a target as requested, with a redacted push token.
fn target_view(target: &Target) -> serde_json::Value {
    let mut value = serde_json::json!(target);
    if let Some(token) = value.get_mut("token").and_then(|token| token.get_mut("token")) {
        *token = "[redacted]".into();
    }
    value
}
