//! Messages.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use stentor_core::id::{CampaignId, DeviceId, MessageId, ScheduleId};
use stentor_core::message::{Message, Notification, Priority};
use stentor_core::target::Target;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::AppCaller;
use super::campaigns::LedgerView;
use super::devices::Attempt;
use super::extract::{PathParams, QueryParams, RepeatableBody};
use super::page::{Before, next_of};
use super::text::Instant;
use super::{Api, ApiResult};
use crate::service::{AcceptedReply, AudienceReport, MessageRequest, Reply, Sent};

const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Returns the routes of this noun.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(send, list))
        .routes(routes!(show))
        .routes(routes!(ledger))
        .routes(routes!(deliveries))
}

/// What a dry run found out.
#[derive(Serialize, ToSchema)]
struct DryRun {
    dry_run: bool,
    audience: Audience,
    /// Bytes of the payload, by provider.
    payload_bytes: BTreeMap<String, u64>,
}

/// Whom the target would reach now.
#[derive(Serialize, ToSchema)]
struct Audience {
    total: u64,
    providers: BTreeMap<String, u64>,
}

/// A message in a list.
#[derive(Serialize, ToSchema)]
struct MessageSummary {
    #[schema(value_type = String)]
    id: MessageId,
    #[schema(value_type = String)]
    campaign: CampaignId,
    state: &'static str,
    created_at: Instant,
    due_at: Instant,
}

/// A piece of the messages, newest first.
#[derive(Serialize, ToSchema)]
struct MessageList {
    messages: Vec<MessageSummary>,
    /// Those whose campaign cannot be read, in the same order; absent when there is none. It can be canceled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<String>>)]
    damaged: Vec<MessageId>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A message as it was asked for; of a push token only that there is one.
#[derive(Serialize, ToSchema)]
#[schema(as = Message)]
pub(super) struct MessageView {
    #[schema(value_type = String)]
    id: MessageId,
    #[schema(value_type = String)]
    campaign: CampaignId,
    #[serde(flatten)]
    what: SpecView,
    created_at: Instant,
    due_at: Instant,
    /// After this it is never sent.
    expires_at: Instant,
    /// The schedule that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    schedule: Option<ScheduleId>,
}

/// What was asked for.
#[derive(Serialize, ToSchema)]
#[schema(as = MessageContent)]
pub(super) struct SpecView {
    /// As in the request.
    #[schema(value_type = Object)]
    target: serde_json::Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<crate::service::NotificationRequest>)]
    notification: Option<Notification>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    data: BTreeMap<String, String>,
    /// Each in the field that its adapter names.
    #[serde(flatten)]
    #[schema(ignore)]
    overrides: BTreeMap<&'static str, serde_json::Map<String, serde_json::Value>>,
    #[schema(value_type = String)]
    priority: Priority,
    ttl_seconds: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    collapse_key: Option<String>,
}

/// All attempts of one message at one device.
#[derive(Serialize, ToSchema)]
struct Deliveries {
    deliveries: Vec<Attempt>,
}

impl From<stentor_core::message::MessageSpec> for SpecView {
    fn from(spec: stentor_core::message::MessageSpec) -> Self {
        Self {
            target: target_view(&spec.target),
            notification: spec.content.notification,
            data: spec.content.data,
            overrides: crate::providers::by_field(spec.content.overrides),
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

impl From<AudienceReport> for DryRun {
    fn from(report: AudienceReport) -> Self {
        let by_word = |map: &BTreeMap<stentor_core::device::ProviderKind, u64>| {
            map.iter().map(|(provider, count)| (provider.to_string(), *count)).collect()
        };
        let audience = Audience { total: report.total(), providers: by_word(&report.audience) };
        Self { dry_run: true, audience, payload_bytes: by_word(&report.payload_bytes) }
    }
}

/// Sends a message; 202 means that it is on disk. With the header `Idempotency-Key` (1 to 255 characters of visible ASCII)
/// repeating the request is harmless: the same key and body get the first reply again, with `Idempotent-Replayed: true`.
#[utoipa::path(post, path = "/v1/messages", tag = "messages", request_body = MessageRequest,
    responses((status = 202, description = "Accepted: the message is on disk", body = AcceptedReply, headers(("Location" = String), ("Idempotent-Replayed" = String))),
        (status = 200, description = "Dry run: checked and counted, nothing kept", body = DryRun)))]
async fn send(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    RepeatableBody { request, repeat }: RepeatableBody<MessageRequest>,
) -> ApiResult<Response> {
    match api.service().send(caller, request, repeat).await? {
        Sent::Kept(reply) => Ok(kept(reply, "/v1/messages/")),
        Sent::Checked(report) => Ok(Json(DryRun::from(report)).into_response()),
    }
}

/// Lists messages, newest first.
#[utoipa::path(get, path = "/v1/messages", tag = "messages", params(Before), responses((status = 200, body = MessageList)))]
async fn list(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    QueryParams(query): QueryParams<Before>,
) -> ApiResult<Json<MessageList>> {
    let page = query.page(|text| text.parse().ok().map(MessageId::raw))?;
    let campaigns = api.service().campaigns(caller, page).await?;
    let damaged =
        api.service().broken_campaigns(caller, page).await?.into_iter().map(MessageId::from).collect();
    let next = next_of(&campaigns, page.limit, |campaign| MessageId::from(campaign.id).to_string());
    let messages = campaigns.into_iter().map(|campaign| MessageSummary {
        id: campaign.id.into(),
        campaign: campaign.id,
        state: campaign.state.as_str(),
        created_at: campaign.created_at.into(),
        due_at: campaign.due_at.into(),
    });
    Ok(Json(MessageList { messages: messages.collect(), damaged, next }))
}

/// Shows a message as it was asked for.
#[utoipa::path(get, path = "/v1/messages/{message}", tag = "messages", params(("message" = String, Path)), responses((status = 200, body = MessageView)))]
async fn show(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(id): PathParams<MessageId>,
) -> ApiResult<Json<MessageView>> {
    Ok(Json(api.service().message(caller, id).await?.into()))
}

/// Returns the books of a message's campaign.
#[utoipa::path(get, path = "/v1/messages/{message}/ledger", tag = "messages", params(("message" = String, Path)), responses((status = 200, body = LedgerView)))]
async fn ledger(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(id): PathParams<MessageId>,
) -> ApiResult<Json<LedgerView>> {
    Ok(Json(api.service().ledger(caller, id.into()).await?.into()))
}

/// Returns every attempt of one message at one device.
#[utoipa::path(get, path = "/v1/messages/{message}/deliveries/{device}", tag = "messages", params(("message" = String, Path), ("device" = String, Path)), responses((status = 200, body = Deliveries)))]
async fn deliveries(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams((message, device)): PathParams<(MessageId, DeviceId)>,
) -> ApiResult<Json<Deliveries>> {
    let attempts = api.service().delivery(caller, message, device).await?;
    Ok(Json(Deliveries { deliveries: attempts.into_iter().map(Attempt::from).collect() }))
}

/// Writes a reply that was kept, with where the new thing is.
pub(super) fn kept(Reply { reply, replayed }: Reply, prefix: &str) -> Response {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
    let location = first_id(&reply.body).map(|id| super::location(&format!("{prefix}{id}")));
    let kind = HeaderValue::from_static("application/json");
    let mut response = (status, [(header::CONTENT_TYPE, kind)], reply.body).into_response();
    response.headers_mut().extend(location);
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// Finds the id in a reply of ours, which begins with it.
fn first_id(body: &str) -> Option<&str> {
    body.strip_prefix("{\"id\":\"")?.split('"').next()
}

/// Writes a target as it was asked for, without a push token.
fn target_view(target: &Target) -> serde_json::Value {
    let mut value = serde_json::to_value(target).unwrap_or_default();
    if let Some(token) = value.get_mut("token").and_then(|token| token.get_mut("token")) {
        *token = "[redacted]".into();
    }
    value
}
