//! Apps and their keys.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use stentor_core::app::{ApiKey, App, Scope};
use stentor_core::id::{AppId, KeyId};
use stentor_core::name::Label;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::Authenticated;
use super::extract::{Body, PathParams};
use super::origin::Via;
use super::text::Instant;
use super::{Api, ApiResult};

/// Returns the routes of this noun.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(create_app, list_apps))
        .routes(routes!(show_app, delete_app))
        .routes(routes!(create_key, list_keys))
        .routes(routes!(delete_key))
}

/// What to call a new app.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AppRequest {
    /// What people call it.
    #[schema(value_type = String)]
    name: Label,
}

/// An app.
#[derive(Serialize, ToSchema)]
#[schema(as = App)]
struct AppView {
    #[schema(value_type = String)]
    id: AppId,
    name: String,
    created_at: Instant,
}

/// All apps.
#[derive(Serialize, ToSchema)]
struct AppList {
    apps: Vec<AppView>,
}

/// What a new key may do.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct KeyRequest {
    /// What people call it.
    #[schema(value_type = String)]
    name: Label,
    /// `send`, `register`, `admin`.
    #[schema(value_type = Vec<String>, min_items = 1)]
    scopes: Vec<Scope>,
}

/// A key, without its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = Key)]
struct KeyView {
    #[schema(value_type = String)]
    id: KeyId,
    name: String,
    #[schema(value_type = Vec<String>)]
    scopes: Vec<Scope>,
    created_at: Instant,
}

/// A new key with its secret, which is shown this once.
#[derive(Serialize, ToSchema)]
struct NewKey {
    #[schema(value_type = String)]
    id: KeyId,
    name: String,
    #[schema(value_type = Vec<String>)]
    scopes: Vec<Scope>,
    created_at: Instant,
    /// Keep it: it is not kept here.
    secret: String,
}

/// Keys of an app.
#[derive(Serialize, ToSchema)]
struct KeyList {
    keys: Vec<KeyView>,
}

impl From<App> for AppView {
    fn from(app: App) -> Self {
        Self { id: app.id, name: app.name.into(), created_at: app.created_at.into() }
    }
}

impl From<ApiKey> for KeyView {
    fn from(key: ApiKey) -> Self {
        Self {
            id: key.id,
            name: key.name.into(),
            scopes: key.scopes.list(),
            created_at: key.created_at.into(),
        }
    }
}

/// Makes an app (root key).
#[utoipa::path(post, path = "/v1/apps", tag = "apps", request_body = AppRequest, responses((status = 201, body = AppView)))]
async fn create_app(
    State(api): State<Api>,
    Authenticated(who): Authenticated,
    Via(from): Via,
    Body(request): Body<AppRequest>,
) -> ApiResult<(StatusCode, Json<AppView>)> {
    let app = api.service().create_app(who, from, request.name).await?;
    Ok((StatusCode::CREATED, Json(app.into())))
}

/// Lists all apps (root key).
#[utoipa::path(get, path = "/v1/apps", tag = "apps", responses((status = 200, body = AppList)))]
async fn list_apps(State(api): State<Api>, Authenticated(who): Authenticated) -> ApiResult<Json<AppList>> {
    let apps = api.service().apps(who).await?;
    Ok(Json(AppList { apps: apps.into_iter().map(AppView::from).collect() }))
}

/// Shows an app.
#[utoipa::path(get, path = "/v1/apps/{app}", tag = "apps", params(("app" = String, Path)), responses((status = 200, body = AppView)))]
async fn show_app(
    State(api): State<Api>,
    Authenticated(who): Authenticated,
    PathParams(app): PathParams<AppId>,
) -> ApiResult<Json<AppView>> {
    Ok(Json(api.service().app(who, app).await?.into()))
}

/// Removes an app with all that belongs to it (root key).
#[utoipa::path(delete, path = "/v1/apps/{app}", tag = "apps", params(("app" = String, Path)), responses((status = 204)))]
async fn delete_app(
    State(api): State<Api>,
    Authenticated(who): Authenticated,
    Via(from): Via,
    PathParams(app): PathParams<AppId>,
) -> ApiResult<StatusCode> {
    api.service().delete_app(who, from, app).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Makes a key; its secret is shown this once.
#[utoipa::path(post, path = "/v1/apps/{app}/keys", tag = "apps", params(("app" = String, Path)), request_body = KeyRequest, responses((status = 201, body = NewKey)))]
async fn create_key(
    State(api): State<Api>,
    Authenticated(who): Authenticated,
    Via(from): Via,
    PathParams(app): PathParams<AppId>,
    Body(request): Body<KeyRequest>,
) -> ApiResult<(StatusCode, Json<NewKey>)> {
    let made = api.service().create_key((who, from), app, request.name, &request.scopes).await?;
    let secret = made.secret.expose_secret().to_owned();
    let KeyView { id, name, scopes, created_at } = made.key.into();
    Ok((StatusCode::CREATED, Json(NewKey { id, name, scopes, created_at, secret })))
}

/// Lists an app's keys.
#[utoipa::path(get, path = "/v1/apps/{app}/keys", tag = "apps", params(("app" = String, Path)), responses((status = 200, body = KeyList)))]
async fn list_keys(
    State(api): State<Api>,
    Authenticated(who): Authenticated,
    PathParams(app): PathParams<AppId>,
) -> ApiResult<Json<KeyList>> {
    let keys = api.service().keys(who, app).await?;
    Ok(Json(KeyList { keys: keys.into_iter().map(KeyView::from).collect() }))
}

/// Removes a key.
#[utoipa::path(delete, path = "/v1/apps/{app}/keys/{key}", tag = "apps", params(("app" = String, Path), ("key" = String, Path)), responses((status = 204)))]
async fn delete_key(
    State(api): State<Api>,
    Authenticated(who): Authenticated,
    Via(from): Via,
    PathParams((app, key)): PathParams<(AppId, KeyId)>,
) -> ApiResult<StatusCode> {
    api.service().delete_key(who, from, app, key).await?;
    Ok(StatusCode::NO_CONTENT)
}
