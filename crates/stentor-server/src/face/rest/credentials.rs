//! Credentials of apps at push services.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::outcome::Reason;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::Authenticated;
use super::extract::{Body, LargeBody, PathParams};
use super::origin::Via;
use super::{Api, ApiResult};
use crate::contract::Instant;
use crate::service::{CredentialSummary, CredentialView};

/// Returns the routes of credentials.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list_credentials))
        .routes(routes!(put_fcm, delete_fcm))
        .routes(routes!(put_apns, delete_apns))
        .routes(routes!(put_null, delete_null))
}

/// An FCM credential.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FcmCredential {
    /// The service account's JSON as Google issues it.
    #[schema(value_type = Object)]
    service_account: serde_json::Map<String, Value>,
    /// Where to send instead of fcm.googleapis.com.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
    /// Where to fetch tokens instead of the service account's `token_uri`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token_endpoint: Option<String>,
    /// Name that the endpoint's certificate must bear, if it is not its host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server_name: Option<String>,
    /// Certificates (PEM) to trust at these endpoints instead of the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ca_pem: Option<String>,
    /// Messages per minute, or `none`: nothing but the push service's own answers bounds the rate. 600,000 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<QuotaRequest>)]
    quota: Option<Value>,
    /// Most connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_connections: Option<u32>,
}

/// An APNs credential.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ApnsCredential {
    /// The .p8 key as Apple issues it.
    key_p8: String,
    /// Its id.
    key_id: String,
    /// The team.
    team_id: String,
    /// The app's bundle id.
    bundle_id: String,
    /// `production` (when absent) or `sandbox`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    environment: Option<String>,
    /// Where to send instead of Apple.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
    /// Name that the endpoint's certificate must bear, if it is not its host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server_name: Option<String>,
    /// Certificates (PEM) to trust at the endpoint instead of the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ca_pem: Option<String>,
    /// Messages per minute, or `none`: nothing but the push service's own answers bounds the rate, as when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<QuotaRequest>)]
    quota: Option<Value>,
    /// Most connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_connections: Option<u32>,
}

/// How much may be sent: messages per minute, or the word `none`. Documentation only: what was said is checked later.
#[derive(ToSchema)]
#[schema(as = Quota)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes the values and is never built")]
enum QuotaRequest {
    /// Messages per minute.
    PerMinute(u32),
    /// `none`.
    Word(String),
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

/// A credential for the provider that sends nothing.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NullCredential {}

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

/// Puts the credential for Firebase Cloud Messaging.
#[utoipa::path(put, path = "/v1/apps/{app}/credentials/fcm", tag = "apps", params(("app" = String, Path)), request_body = FcmCredential, responses((status = 204)))]
async fn put_fcm(
    State(api): State<Api>,
    Authenticated(who): Authenticated,
    Via(from): Via,
    PathParams(app): PathParams<AppId>,
    LargeBody(given): LargeBody<FcmCredential>,
) -> ApiResult<StatusCode> {
    put(&api, (who, from), app, ProviderKind::Fcm, &given).await
}

/// Puts the credential for the Apple Push Notification service.
#[utoipa::path(put, path = "/v1/apps/{app}/credentials/apns", tag = "apps", params(("app" = String, Path)), request_body = ApnsCredential, responses((status = 204)))]
async fn put_apns(
    State(api): State<Api>,
    Authenticated(who): Authenticated,
    Via(from): Via,
    PathParams(app): PathParams<AppId>,
    LargeBody(given): LargeBody<ApnsCredential>,
) -> ApiResult<StatusCode> {
    put(&api, (who, from), app, ProviderKind::Apns, &given).await
}

/// Lets the app use the provider that accepts everything and sends nothing.
#[utoipa::path(put, path = "/v1/apps/{app}/credentials/null", tag = "apps", params(("app" = String, Path)), request_body = NullCredential, responses((status = 204)))]
async fn put_null(
    State(api): State<Api>,
    Authenticated(who): Authenticated,
    Via(from): Via,
    PathParams(app): PathParams<AppId>,
    Body(given): Body<NullCredential>,
) -> ApiResult<StatusCode> {
    put(&api, (who, from), app, ProviderKind::Null, &given).await
}

/// Removes the credential for Firebase Cloud Messaging; what is queued for it waits.
#[utoipa::path(delete, path = "/v1/apps/{app}/credentials/fcm", tag = "apps", params(("app" = String, Path)), responses((status = 204)))]
async fn delete_fcm(
    State(api): State<Api>,
    Authenticated(who): Authenticated,
    Via(from): Via,
    PathParams(app): PathParams<AppId>,
) -> ApiResult<StatusCode> {
    api.service().delete_credential(who, from, app, ProviderKind::Fcm).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes the credential for the Apple Push Notification service; what is queued for it waits.
#[utoipa::path(delete, path = "/v1/apps/{app}/credentials/apns", tag = "apps", params(("app" = String, Path)), responses((status = 204)))]
async fn delete_apns(
    State(api): State<Api>,
    Authenticated(who): Authenticated,
    Via(from): Via,
    PathParams(app): PathParams<AppId>,
) -> ApiResult<StatusCode> {
    api.service().delete_credential(who, from, app, ProviderKind::Apns).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes the credential for the provider that sends nothing; what is queued for it waits.
#[utoipa::path(delete, path = "/v1/apps/{app}/credentials/null", tag = "apps", params(("app" = String, Path)), responses((status = 204)))]
async fn delete_null(
    State(api): State<Api>,
    Authenticated(who): Authenticated,
    Via(from): Via,
    PathParams(app): PathParams<AppId>,
) -> ApiResult<StatusCode> {
    api.service().delete_credential(who, from, app, ProviderKind::Null).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn put(
    api: &Api,
    by: (crate::service::Identity, crate::service::Origin),
    app: AppId,
    provider: ProviderKind,
    given: &impl Serialize,
) -> ApiResult<StatusCode> {
    let secret = serde_json::to_string(given).unwrap_or_default();
    api.service().put_credential(by, app, provider, secret).await?;
    Ok(StatusCode::NO_CONTENT)
}
