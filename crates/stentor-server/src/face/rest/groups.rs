//! Groups and their members.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use stentor_core::error::Invalid;
use stentor_core::group::{Group, Member};
use stentor_core::id::DeviceId;
use stentor_core::name::{ExternalId, GroupName};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::AppCaller;
use super::extract::{LargeBody, PathParams, QueryParams};
use super::page::{After, next_of};
use super::text::Instant;
use super::topics::Change;
use super::{Api, ApiResult};
use crate::service::Members;

const USER_CURSOR: &str = "user:";
const DEVICE_CURSOR: &str = "device:";

/// Returns the routes of this noun.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(put, show, remove))
        .routes(routes!(members, add))
        .routes(routes!(take_out))
}

/// A group.
#[derive(Serialize, ToSchema)]
#[schema(as = Group)]
struct GroupView {
    name: String,
    created_at: Instant,
    member_count: u64,
}

/// A piece of the groups.
#[derive(Serialize, ToSchema)]
struct GroupList {
    groups: Vec<GroupView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Members named in a request: at least one, and at most 1,000 people and 1,000 devices.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MembersRequest {
    /// People, with all their devices.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    users: Vec<ExternalId>,
    /// Single devices.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    devices: Vec<DeviceId>,
}

/// A piece of the members.
#[derive(Serialize, ToSchema)]
struct MemberList {
    users: Vec<String>,
    #[schema(value_type = Vec<String>)]
    devices: Vec<DeviceId>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl From<Group> for GroupView {
    fn from(group: Group) -> Self {
        Self {
            name: group.name.into(),
            created_at: group.created_at.into(),
            member_count: group.member_count,
        }
    }
}

impl From<MembersRequest> for Members {
    fn from(request: MembersRequest) -> Self {
        Self { users: request.users, devices: request.devices }
    }
}

/// Lists groups by name.
#[utoipa::path(get, path = "/v1/groups", tag = "groups", params(After), responses((status = 200, body = GroupList)))]
async fn list(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    QueryParams(query): QueryParams<After>,
) -> ApiResult<Json<GroupList>> {
    let (limit, after) = (query.limit()?, query.name(GroupName::new)?);
    let groups = api.service().groups(caller, after.as_ref(), limit).await?;
    let next = next_of(&groups, limit, |group| group.name.to_string());
    Ok(Json(GroupList { groups: groups.into_iter().map(GroupView::from).collect(), next }))
}

/// Makes a group; harmless when it exists.
#[utoipa::path(put, path = "/v1/groups/{group}", tag = "groups", params(("group" = String, Path)), responses((status = 200, body = GroupView)))]
async fn put(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(group): PathParams<GroupName>,
) -> ApiResult<Json<GroupView>> {
    Ok(Json(api.service().put_group(caller, &group).await?.into()))
}

/// Shows a group.
#[utoipa::path(get, path = "/v1/groups/{group}", tag = "groups", params(("group" = String, Path)), responses((status = 200, body = GroupView)))]
async fn show(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(group): PathParams<GroupName>,
) -> ApiResult<Json<GroupView>> {
    Ok(Json(api.service().group(caller, &group).await?.into()))
}

/// Removes a group; its members stay.
#[utoipa::path(delete, path = "/v1/groups/{group}", tag = "groups", params(("group" = String, Path)), responses((status = 204)))]
async fn remove(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(group): PathParams<GroupName>,
) -> ApiResult<StatusCode> {
    api.service().remove_group(caller, &group).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists a group's members.
#[utoipa::path(get, path = "/v1/groups/{group}/members", tag = "groups", params(("group" = String, Path), After), responses((status = 200, body = MemberList)))]
async fn members(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(group): PathParams<GroupName>,
    QueryParams(query): QueryParams<After>,
) -> ApiResult<Json<MemberList>> {
    let (limit, after) = (query.limit()?, query.name(member_of)?);
    let members = api.service().members(caller, &group, after.as_ref(), limit).await?;
    let mut list =
        MemberList { users: Vec::new(), devices: Vec::new(), next: next_of(&members, limit, cursor_of) };
    for member in members {
        match member {
            Member::User(user) => list.users.push(user.into()),
            Member::Device(device) => list.devices.push(device),
        }
    }
    Ok(Json(list))
}

/// Adds members; unknown people are made known, unknown devices are counted.
#[utoipa::path(post, path = "/v1/groups/{group}/members", tag = "groups", params(("group" = String, Path)), request_body = MembersRequest, responses((status = 200, body = Change)))]
async fn add(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(group): PathParams<GroupName>,
    LargeBody(request): LargeBody<MembersRequest>,
) -> ApiResult<Json<Change>> {
    Ok(Json(api.service().add_members(caller, &group, request.into()).await?.into()))
}

/// Takes members out.
#[utoipa::path(post, path = "/v1/groups/{group}/members/remove", tag = "groups", params(("group" = String, Path)), request_body = MembersRequest, responses((status = 200, body = Change)))]
async fn take_out(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(group): PathParams<GroupName>,
    LargeBody(request): LargeBody<MembersRequest>,
) -> ApiResult<Json<Change>> {
    Ok(Json(api.service().remove_members(caller, &group, request.into()).await?.into()))
}

fn cursor_of(member: &Member) -> String {
    match member {
        Member::User(user) => format!("{USER_CURSOR}{user}"),
        Member::Device(device) => format!("{DEVICE_CURSOR}{device}"),
    }
}

fn member_of(cursor: String) -> Result<Member, Invalid> {
    if let Some(user) = cursor.strip_prefix(USER_CURSOR) {
        return ExternalId::new(user).map(Member::User);
    }
    let device = cursor.strip_prefix(DEVICE_CURSOR).and_then(|id| id.parse().ok());
    device.map(Member::Device).ok_or_else(|| Invalid::new("after", "is no member"))
}
