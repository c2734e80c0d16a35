//! Topics and subscriptions.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use stentor_core::id::DeviceId;
use stentor_core::name::TopicName;
use stentor_core::ports::store::SubscriptionChange;
use stentor_core::topic::TopicSummary;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::AppCaller;
use super::extract::{Body, PathParams, QueryParams};
use super::page::{After, next_of};
use super::{Api, ApiResult};

/// Returns the routes of this noun.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show, remove))
        .routes(routes!(subscribe))
        .routes(routes!(unsubscribe))
}

/// A topic.
#[derive(Serialize, ToSchema)]
#[schema(as = Topic)]
struct TopicView {
    name: String,
    /// Devices subscribed.
    device_count: u64,
}

/// A piece of the topics.
#[derive(Serialize, ToSchema)]
struct TopicList {
    topics: Vec<TopicView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Devices to subscribe or to take out: 1 to 1,000.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SubscriptionRequest {
    #[schema(value_type = Vec<String>, min_items = 1, max_items = 1000)]
    devices: Vec<DeviceId>,
}

/// What a change came to.
#[derive(Serialize, ToSchema)]
pub(super) struct Change {
    /// Added or removed.
    changed: u64,
    /// Nothing was to do.
    unchanged: u64,
    /// Not this app's.
    unknown: u64,
}

impl From<SubscriptionChange> for Change {
    fn from(change: SubscriptionChange) -> Self {
        Self { changed: change.changed, unchanged: change.unchanged, unknown: change.unknown }
    }
}

impl From<TopicSummary> for TopicView {
    fn from(topic: TopicSummary) -> Self {
        Self { name: topic.name.into(), device_count: topic.device_count }
    }
}

/// Lists topics by name.
#[utoipa::path(get, path = "/v1/topics", tag = "topics", params(After), responses((status = 200, body = TopicList)))]
async fn list(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    QueryParams(query): QueryParams<After>,
) -> ApiResult<Json<TopicList>> {
    let (limit, after) = (query.limit()?, query.name(TopicName::new)?);
    let topics = api.service().topics(caller, after.as_ref(), limit).await?;
    let next = next_of(&topics, limit, |topic| topic.name.to_string());
    Ok(Json(TopicList { topics: topics.into_iter().map(TopicView::from).collect(), next }))
}

/// Shows a topic.
#[utoipa::path(get, path = "/v1/topics/{topic}", tag = "topics", params(("topic" = String, Path)), responses((status = 200, body = TopicView)))]
async fn show(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(topic): PathParams<TopicName>,
) -> ApiResult<Json<TopicView>> {
    Ok(Json(api.service().topic(caller, &topic).await?.into()))
}

/// Removes a topic with its subscriptions.
#[utoipa::path(delete, path = "/v1/topics/{topic}", tag = "topics", params(("topic" = String, Path)), responses((status = 204)))]
async fn remove(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(topic): PathParams<TopicName>,
) -> ApiResult<StatusCode> {
    api.service().remove_topic(caller, &topic).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Subscribes devices; the topic exists from then on.
#[utoipa::path(post, path = "/v1/topics/{topic}/subscriptions", tag = "topics", params(("topic" = String, Path)), request_body = SubscriptionRequest, responses((status = 200, body = Change)))]
async fn subscribe(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(topic): PathParams<TopicName>,
    Body(request): Body<SubscriptionRequest>,
) -> ApiResult<Json<Change>> {
    Ok(Json(api.service().subscribe(caller, &topic, &request.devices).await?.into()))
}

/// Takes subscriptions away.
#[utoipa::path(post, path = "/v1/topics/{topic}/subscriptions/remove", tag = "topics", params(("topic" = String, Path)), request_body = SubscriptionRequest, responses((status = 200, body = Change)))]
async fn unsubscribe(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(topic): PathParams<TopicName>,
    Body(request): Body<SubscriptionRequest>,
) -> ApiResult<Json<Change>> {
    Ok(Json(api.service().unsubscribe(caller, &topic, &request.devices).await?.into()))
}
