//! Schedules.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use stentor_core::id::ScheduleId;
use stentor_core::ports::store::{Page, StoredReply};
use stentor_core::schedule::{CatchUp, ScheduleState};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::AppCaller;
use super::extract::{PathParams, QueryParams, RepeatableBody};
use super::messages::{SpecView, kept};
use super::origin::Via;
use super::page::{After, cursor, next_of};
use super::text::Instant;
use super::{Api, ApiResult};
use crate::service::{ScheduleRequest, ScheduleView};

/// Returns the routes of this noun.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(show, remove))
        .routes(routes!(cancel))
        .routes(routes!(pause))
        .routes(routes!(resume))
}

/// A schedule with what comes next.
#[derive(Serialize, ToSchema)]
struct Schedule {
    #[schema(value_type = String)]
    id: ScheduleId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    cron: String,
    time_zone: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Instant>,
    #[schema(value_type = String)]
    catch_up: CatchUp,
    /// Whether audiences start at the very tick instead of some seconds later.
    exact: bool,
    /// `active`, `paused`, `canceled`, `finished` or `damaged`.
    state: &'static str,
    created_at: Instant,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_due: Option<Instant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_fired: Option<Instant>,
    message: SpecView,
    /// The next five occurrences.
    upcoming: Vec<Instant>,
}

/// A piece of the schedules.
#[derive(Serialize, ToSchema)]
struct ScheduleList {
    schedules: Vec<Schedule>,
    /// Those that cannot be read, in the same order; absent when there is none. They can be deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<String>>)]
    damaged: Vec<ScheduleId>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl From<ScheduleView> for Schedule {
    fn from(ScheduleView { schedule, upcoming }: ScheduleView) -> Self {
        Self {
            id: schedule.id,
            name: schedule.name.map(String::from),
            cron: schedule.recurrence.cron,
            time_zone: schedule.recurrence.time_zone.into(),
            until: schedule.recurrence.until.map(Instant),
            catch_up: schedule.recurrence.catch_up,
            exact: schedule.recurrence.exact,
            state: schedule.state.as_str(),
            created_at: schedule.created_at.into(),
            next_due: schedule.next_due.map(Instant),
            last_fired: schedule.last_fired.map(Instant),
            message: schedule.spec.into(),
            upcoming: upcoming.into_iter().map(Instant).collect(),
        }
    }
}

/// Makes a schedule. With the header `Idempotency-Key` (1 to 255 characters of visible ASCII) repeating the request is
/// harmless: the same key and body get the first reply again.
#[utoipa::path(post, path = "/v1/schedules", tag = "schedules", request_body = ScheduleRequest,
    responses((status = 201, body = Schedule, headers(("Location" = String), ("Idempotent-Replayed" = String)))))]
async fn create(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    Via(from): Via,
    RepeatableBody { request, repeat }: RepeatableBody<ScheduleRequest>,
) -> ApiResult<Response> {
    let write = |view: &ScheduleView| StoredReply {
        status: StatusCode::CREATED.as_u16(),
        body: serde_json::to_string(&Schedule::from(view.clone())).unwrap_or_default(),
    };
    let reply = api.service().create_schedule((caller, from), request, repeat, write).await?;
    Ok(kept(reply, "/v1/schedules/"))
}

/// Lists schedules in order of id.
#[utoipa::path(get, path = "/v1/schedules", tag = "schedules", params(After), responses((status = 200, body = ScheduleList)))]
async fn list(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    QueryParams(query): QueryParams<After>,
) -> ApiResult<Json<ScheduleList>> {
    let raw = |text: &str| text.parse().ok().map(ScheduleId::raw);
    let page = Page { after: cursor("after", query.after.as_deref(), raw)?, limit: query.limit()? };
    let views = api.service().schedules(caller, page).await?;
    let damaged = api.service().broken_schedules(caller, page).await?;
    let next = next_of(&views, page.limit, |view| view.schedule.id.to_string());
    Ok(Json(ScheduleList { schedules: views.into_iter().map(Schedule::from).collect(), damaged, next }))
}

/// Shows a schedule with its next five occurrences.
#[utoipa::path(get, path = "/v1/schedules/{schedule}", tag = "schedules", params(("schedule" = String, Path)), responses((status = 200, body = Schedule)))]
async fn show(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(id): PathParams<ScheduleId>,
) -> ApiResult<Json<Schedule>> {
    Ok(Json(api.service().schedule(caller, id).await?.into()))
}

/// Ends a schedule and removes it, also one that cannot be read; what it has sent stays.
#[utoipa::path(delete, path = "/v1/schedules/{schedule}", tag = "schedules", params(("schedule" = String, Path)), responses((status = 204)))]
async fn remove(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    Via(from): Via,
    PathParams(id): PathParams<ScheduleId>,
) -> ApiResult<StatusCode> {
    api.service().remove_schedule((caller, from), id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends a schedule; what it has sent stays. One that cannot be read is deleted, and nothing of it can be shown.
#[utoipa::path(post, path = "/v1/schedules/{schedule}/cancel", tag = "schedules", params(("schedule" = String, Path)), responses((status = 200, body = Schedule), (status = 204)))]
async fn cancel(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    Via(from): Via,
    PathParams(id): PathParams<ScheduleId>,
) -> ApiResult<Response> {
    let canceled = api.service().cancel_schedule((caller, from), id).await?;
    Ok(canceled.map_or_else(
        || StatusCode::NO_CONTENT.into_response(),
        |view| Json(Schedule::from(view)).into_response(),
    ))
}

/// Holds a schedule; occurrences of that time are not made up for.
#[utoipa::path(post, path = "/v1/schedules/{schedule}/pause", tag = "schedules", params(("schedule" = String, Path)), responses((status = 200, body = Schedule)))]
async fn pause(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    Via(from): Via,
    PathParams(id): PathParams<ScheduleId>,
) -> ApiResult<Json<Schedule>> {
    Ok(Json(api.service().set_schedule((caller, from), id, ScheduleState::Paused).await?.into()))
}

/// Lets a paused schedule go on with its next occurrence.
#[utoipa::path(post, path = "/v1/schedules/{schedule}/resume", tag = "schedules", params(("schedule" = String, Path)), responses((status = 200, body = Schedule)))]
async fn resume(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    Via(from): Via,
    PathParams(id): PathParams<ScheduleId>,
) -> ApiResult<Json<Schedule>> {
    Ok(Json(api.service().set_schedule((caller, from), id, ScheduleState::Active).await?.into()))
}
