//! Credentials of an app: one route for all push services, whose adapters say what a credential is made of.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::outcome::Reason;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::Authenticated;
use super::extract::{LargeObject, PathParams};
use super::origin::Via;
use super::{Api, ApiResult};
use crate::contract::Instant;
use crate::service::{CredentialSummary, CredentialView};

/// Returns the routes of this noun.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_credentials)).routes(routes!(put_credential, delete_credential))
}

/// How a quota stands.
#[derive(Serialize, ToSchema)]
struct QuotaStatus {
    /// Messages per minute that are allowed now, while the credential warms up.
    per_minute_now: u64,
    /// Messages that may go at once.
    tokens: u64,
    /// How long work has waited for it since the server's start.
    throttled_seconds: f64,
}

/// What may be shown of a credential.
#[derive(Serialize, ToSchema)]
struct Credential {
    #[schema(value_type = String)]
    provider: ProviderKind,
    updated_at: Instant,
    summary: CredentialSummary,
    /// `ok` or `parked`.
    state: &'static str,
    /// Why it is parked, in a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    reason: Option<Reason>,
    /// Why it is parked.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// How its quota stands, once it was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    quota: Option<QuotaStatus>,
}

/// Credentials of an app.
#[derive(Serialize, ToSchema)]
struct CredentialList {
    credentials: Vec<Credential>,
}

impl From<CredentialView> for Credential {
    fn from(view: CredentialView) -> Self {
        Self {
            provider: view.provider,
            updated_at: view.updated_at.into(),
            summary: view.summary,
            state: if view.parked.is_some() { "parked" } else { "ok" },
            reason: view.parked.as_ref().map(|resting| resting.reason),
            detail: view.parked.map(|resting| resting.detail),
            quota: view.quota.map(|quota| QuotaStatus {
                per_minute_now: quota.per_minute_now,
                tokens: quota.tokens,
                throttled_seconds: quota.waited.as_secs_f64(),
            }),
        }
    }
}

/// Lists an app's credentials, without their secrets.
#[utoipa::path(get, path = "/v1/apps/{app}/credentials", tag = "apps", params(("app" = String, Path)), responses((status = 200, body = CredentialList)))]
async fn list_credentials(
    State(api): State<Api>,
    Authenticated(who): Authenticated,
    PathParams(app): PathParams<AppId>,
) -> ApiResult<Json<CredentialList>> {
    let views = api.service().credentials(who, app).await?;
    Ok(Json(CredentialList { credentials: views.into_iter().map(Credential::from).collect() }))
}

/// Puts the credential for a push service.
#[utoipa::path(put, path = "/v1/apps/{app}/credentials/{provider}", tag = "apps", params(("app" = String, Path), ("provider" = String, Path)), responses((status = 204)))]
async fn put_credential(
    State(api): State<Api>,
    Authenticated(who): Authenticated,
    Via(from): Via,
    PathParams((app, provider)): PathParams<(AppId, ProviderKind)>,
    body: LargeObject,
) -> ApiResult<StatusCode> {
    let credential = body.read(&stentor_providers::descriptor(provider).credential)?;
    let secret = serde_json::Value::Object(credential).to_string();
    api.service().put_credential((who, from), app, provider, secret).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes the credential for a push service; what is queued for it waits.
#[utoipa::path(delete, path = "/v1/apps/{app}/credentials/{provider}", tag = "apps", params(("app" = String, Path), ("provider" = String, Path)), responses((status = 204)))]
async fn delete_credential(
    State(api): State<Api>,
    Authenticated(who): Authenticated,
    Via(from): Via,
    PathParams((app, provider)): PathParams<(AppId, ProviderKind)>,
) -> ApiResult<StatusCode> {
    api.service().delete_credential(who, from, app, provider).await?;
    Ok(StatusCode::NO_CONTENT)
}
