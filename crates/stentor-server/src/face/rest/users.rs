//! People.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use stentor_core::id::DeviceId;
use stentor_core::name::ExternalId;
use stentor_core::user::User;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::AppCaller;
use super::extract::{PathParams, QueryParams};
use super::page::{After, next_of};
use super::text::Instant;
use super::{Api, ApiResult};

/// Returns the routes of this noun.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(put, show, remove))
}

/// A person.
#[derive(Serialize, ToSchema)]
#[schema(as = User)]
struct UserView {
    /// The app's own id.
    external_id: String,
    created_at: Instant,
    /// At most 1,000; empty in lists.
    #[schema(value_type = Vec<String>)]
    devices: Vec<DeviceId>,
}

/// A piece of the people.
#[derive(Serialize, ToSchema)]
struct UserList {
    users: Vec<UserView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl From<User> for UserView {
    fn from(user: User) -> Self {
        Self {
            external_id: user.external_id.into(),
            created_at: user.created_at.into(),
            devices: user.devices,
        }
    }
}

/// Lists people by external id, without devices.
#[utoipa::path(get, path = "/v1/users", tag = "users", params(After), responses((status = 200, body = UserList)))]
async fn list(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    QueryParams(query): QueryParams<After>,
) -> ApiResult<Json<UserList>> {
    let (limit, after) = (query.limit()?, query.name(ExternalId::new)?);
    let users = api.service().users(caller, after.as_ref(), limit).await?;
    let next = next_of(&users, limit, |user| user.external_id.to_string());
    Ok(Json(UserList { users: users.into_iter().map(UserView::from).collect(), next }))
}

/// Makes a person known; harmless when known.
#[utoipa::path(put, path = "/v1/users/{external_id}", tag = "users", params(("external_id" = String, Path)), responses((status = 200, body = UserView)))]
async fn put(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(user): PathParams<ExternalId>,
) -> ApiResult<Json<UserView>> {
    Ok(Json(api.service().put_user(caller, &user).await?.into()))
}

/// Shows a person with devices.
#[utoipa::path(get, path = "/v1/users/{external_id}", tag = "users", params(("external_id" = String, Path)), responses((status = 200, body = UserView)))]
async fn show(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(user): PathParams<ExternalId>,
) -> ApiResult<Json<UserView>> {
    Ok(Json(api.service().user(caller, &user).await?.into()))
}

/// Forgets a person; the devices stay, without owner.
#[utoipa::path(delete, path = "/v1/users/{external_id}", tag = "users", params(("external_id" = String, Path)), responses((status = 204)))]
async fn remove(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    PathParams(user): PathParams<ExternalId>,
) -> ApiResult<StatusCode> {
    api.service().remove_user(caller, &user).await?;
    Ok(StatusCode::NO_CONTENT)
}
