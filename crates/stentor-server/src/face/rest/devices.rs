//! Devices and their history.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use stentor_core::device::{Device, Platform, ProviderKind};
use stentor_core::id::{ChunkId, DeviceId, MessageId};
use stentor_core::name::{ExternalId, Tag, TopicName};
use stentor_core::ports::store::{AttemptRecord, DeviceFilter, Page};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::AppCaller;
use super::extract::{LargeBody, PathParams, QueryParams};
use super::page::{Before, checked_limit, cursor, next_of};
use super::text::Instant;
use super::{Api, ApiResult};
use crate::service::{DeviceChange, DeviceRequest};

/// Letters of a push token that are shown.
const TOKEN_HINT_LETTERS: usize = 4;
/// A token must be this long for a part of it to be shown.
const TOKEN_HINT_MIN_BYTES: usize = 16;

/// Returns the routes of this noun.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(register, list))
        .routes(routes!(show, replace, change, remove))
        .routes(routes!(topics))
        .routes(routes!(subscribe, unsubscribe))
        .routes(routes!(history))
}

/// What a registration came to.
#[derive(Serialize, ToSchema)]
struct Registered {
    #[schema(value_type = String)]
    id: DeviceId,
    /// False when the token was known.
    created: bool,
}

/// Why and when a device left every audience.
#[derive(Serialize, ToSchema)]
struct Retired {
    at: Instant,
    /// What the push service said.
    reason: &'static str,
}

/// A device; of its token only a hint is shown.
#[derive(Serialize, ToSchema)]
#[schema(as = Device)]
struct DeviceView {
    #[schema(value_type = String)]
    id: DeviceId,
    #[schema(value_type = String)]
    platform: Platform,
    #[schema(value_type = String)]
    provider: ProviderKind,
    /// The end of the push token.
    token_hint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    locale: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone: Option<String>,
    tags: Vec<String>,
    registered_at: Instant,
    /// Last registration of the present token.
    token_since: Instant,
    /// `active`, `retired` (its token is dead) or `unlisted` (known only because a message named its token).
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retired: Option<Retired>,
}

/// A piece of the devices.
#[derive(Serialize, ToSchema)]
struct DeviceList {
    devices: Vec<DeviceView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Topics of a device.
#[derive(Serialize, ToSchema)]
struct DeviceTopics {
    topics: Vec<String>,
}

/// One attempt to reach a device.
#[derive(Serialize, ToSchema)]
pub(super) struct Attempt {
    #[schema(value_type = String)]
    message: MessageId,
    #[schema(value_type = String)]
    provider: ProviderKind,
    #[schema(value_type = String)]
    chunk: ChunkId,
    /// 1 for the first.
    attempt: u16,
    /// `queued`, `sending`, `accepted`, `rejected`, `expired`, `collapsed`, `canceled` or `failed`.
    state: &'static str,
    /// The cause of the state.
    reason: &'static str,
    /// Whether an attempt before may have reached the device unseen.
    ambiguous: bool,
    /// When it was settled, or leased, or is due.
    at: Instant,
}

/// Attempts, newest message first.
#[derive(Serialize, ToSchema)]
struct History {
    deliveries: Vec<Attempt>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Which devices to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct DeviceQuery {
    /// What comes after this; `next` of the piece before.
    after: Option<String>,
    /// At most this many, 1 to 1,000; 100 when absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Only this provider's.
    #[param(value_type = Option<String>)]
    provider: Option<ProviderKind>,
    /// Only this person's.
    #[param(value_type = Option<String>)]
    user: Option<ExternalId>,
    /// Only with this mark.
    #[param(value_type = Option<String>)]
    tag: Option<Tag>,
}

impl From<Device> for DeviceView {
    fn from(device: Device) -> Self {
        let told = device.registration;
        let retired = device.retired.map(|end| Retired { at: end.at.into(), reason: end.reason.as_str() });
        let state = match (&retired, device.listed) {
            (Some(_), _) => "retired",
            (None, true) => "active",
            (None, false) => "unlisted",
        };
        Self {
            id: device.id,
            platform: told.platform,
            provider: told.provider,
            token_hint: token_hint(told.token.expose()),
            user: told.user.map(String::from),
            locale: told.locale.map(String::from),
            time_zone: told.time_zone.map(String::from),
            tags: told.tags.into_iter().map(String::from).collect(),
            registered_at: device.registered_at.into(),
            token_since: device.token_since.into(),
            state,
            retired,
        }
    }
}

impl From<AttemptRecord> for Attempt {
    fn from(attempt: AttemptRecord) -> Self {
        Self {
            message: attempt.message,
            provider: attempt.provider,
            chunk: attempt.chunk,
            attempt: attempt.attempt,
            state: attempt.record.state().as_str(),
            reason: attempt.record.reason().as_str(),
            ambiguous: attempt.record.is_ambiguous(),
            at: attempt.at.into(),
        }
    }
}

/// Registers a device; registering it again changes nothing.
#[utoipa::path(post, path = "/v1/devices", tag = "devices", request_body = DeviceRequest,
    responses((status = 201, description = "Registered", body = Registered), (status = 200, description = "Already registered", body = Registered)))]
async fn register(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    LargeBody(request): LargeBody<DeviceRequest>,
) -> ApiResult<(StatusCode, [(header::HeaderName, HeaderValue); 1], Json<Registered>)> {
    let done = api.service().register(caller, request).await?;
    let status = if done.created { StatusCode::CREATED } else { StatusCode::OK };
    let location = super::location(&format!("/v1/devices/{}", done.device));
    Ok((status, [location], Json(Registered { id: done.device, created: done.created })))
}

/// Lists devices in order of id.
#[utoipa::path(get, path = "/v1/devices", tag = "devices", params(DeviceQuery), responses((status = 200, body = DeviceList)))]
async fn list(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    QueryParams(query): QueryParams<DeviceQuery>,
) -> ApiResult<Json<DeviceList>> {
    let limit = checked_limit(query.limit)?;
    let raw = |text: &str| text.parse().ok().map(DeviceId::raw);
    let page = Page { after: cursor("after", query.after.as_deref(), raw)?, limit };
    let filter = DeviceFilter { provider: query.provider, user: query.user, tag: query.tag };
    let devices = api.service().devices(caller, &filter, page).await?;
    let next = next_of(&devices, limit, |device| device.id.to_string());
    Ok(Json(DeviceList { devices: devices.into_iter().map(DeviceView::from).collect(), next }))
}

/// Shows a device.
#[utoipa::path(get, path = "/v1/devices/{device}", tag = "devices", params(("device" = String, Path)), responses((status = 200, body = DeviceView)))]
async fn show(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(id): PathParams<DeviceId>,
) -> ApiResult<Json<DeviceView>> {
    Ok(Json(api.service().device(caller, id).await?.into()))
}

/// Replaces what is known of a device; a new token takes the place of the old.
#[utoipa::path(put, path = "/v1/devices/{device}", tag = "devices", params(("device" = String, Path)), request_body = DeviceRequest, responses((status = 200, body = DeviceView)))]
async fn replace(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(id): PathParams<DeviceId>,
    LargeBody(request): LargeBody<DeviceRequest>,
) -> ApiResult<Json<DeviceView>> {
    Ok(Json(api.service().replace_device(caller, id, request).await?.into()))
}

/// Changes some fields of a device.
#[utoipa::path(patch, path = "/v1/devices/{device}", tag = "devices", params(("device" = String, Path)), request_body = DeviceChange, responses((status = 200, body = DeviceView)))]
async fn change(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(id): PathParams<DeviceId>,
    LargeBody(request): LargeBody<DeviceChange>,
) -> ApiResult<Json<DeviceView>> {
    Ok(Json(api.service().change_device(caller, id, request).await?.into()))
}

/// Removes a device with its subscriptions and memberships.
#[utoipa::path(delete, path = "/v1/devices/{device}", tag = "devices", params(("device" = String, Path)), responses((status = 204)))]
async fn remove(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(id): PathParams<DeviceId>,
) -> ApiResult<StatusCode> {
    api.service().remove_device(caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists a device's topics.
#[utoipa::path(get, path = "/v1/devices/{device}/topics", tag = "devices", params(("device" = String, Path)), responses((status = 200, body = DeviceTopics)))]
async fn topics(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(id): PathParams<DeviceId>,
) -> ApiResult<Json<DeviceTopics>> {
    let topics = api.service().topics_of(caller, id).await?;
    Ok(Json(DeviceTopics { topics: topics.into_iter().map(String::from).collect() }))
}

/// Subscribes a device to a topic.
#[utoipa::path(put, path = "/v1/devices/{device}/topics/{topic}", tag = "devices", params(("device" = String, Path), ("topic" = String, Path)), responses((status = 204)))]
async fn subscribe(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams((device, topic)): PathParams<(DeviceId, TopicName)>,
) -> ApiResult<StatusCode> {
    api.service().subscribe_device(caller, device, &topic).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes a device's subscription away.
#[utoipa::path(delete, path = "/v1/devices/{device}/topics/{topic}", tag = "devices", params(("device" = String, Path), ("topic" = String, Path)), responses((status = 204)))]
async fn unsubscribe(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams((device, topic)): PathParams<(DeviceId, TopicName)>,
) -> ApiResult<StatusCode> {
    api.service().unsubscribe_device(caller, device, &topic).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns every attempt to reach a device, newest message first.
#[utoipa::path(get, path = "/v1/devices/{device}/deliveries", tag = "devices", params(("device" = String, Path), Before), responses((status = 200, body = History)))]
async fn history(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(id): PathParams<DeviceId>,
    QueryParams(query): QueryParams<Before>,
) -> ApiResult<Json<History>> {
    let page = query.page(|text| text.parse().ok().map(MessageId::raw))?;
    let attempts = api.service().history(caller, id, page).await?;
    let next = next_of(&attempts, page.limit, |attempt| attempt.message.to_string());
    Ok(Json(History { deliveries: attempts.into_iter().map(Attempt::from).collect(), next }))
}

fn token_hint(token: &str) -> String {
    match token.len() {
        TOKEN_HINT_MIN_BYTES.. => format!("…{}", &token[token.len() - TOKEN_HINT_LETTERS..]),
        _ => "…".to_owned(),
    }
}
