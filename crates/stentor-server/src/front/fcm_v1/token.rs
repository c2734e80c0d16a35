//! The token endpoint: exchanges a signed assertion for a short-lived access token (RFC 7523). Refusals are in the form of RFC 6749.

use axum::Json;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::json;

use crate::contract::{ErrorCode, Problem};
use crate::face::Api;
use crate::face::http::refusal::{Refusal, WriteRefusal};
use crate::face::http::{EntryRule, LimitedRouter, Routes, body};
use crate::front::refused;
use crate::service::AssertionRefusal;

const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// Longest form: the longest assertion with its field name.
const FORM_MAX_BYTES: usize = 16 * 1_024;
/// The lifetime reported for an access token: a second less than the actual one, as at Google.
const EXPIRES_IN_SECONDS: u64 = 3_599;
/// Audiences built into clients, independent of the account's file.
const AUDIENCES: &[&str] = &[
    "https://oauth2.googleapis.com/token",
    "https://accounts.google.com/o/oauth2/token",
    "https://www.googleapis.com/oauth2/v4/token",
];

/// Builds the routes of the endpoint: the path of our account files, and the paths built into clients.
pub(super) fn router(api: &Api) -> LimitedRouter {
    let write: WriteRefusal = write;
    Routes::new()
        .route("/token", post(grant))
        .route("/o/oauth2/token", post(grant))
        .route("/oauth2/v4/token", post(grant))
        .limited(api, api.clone(), EntryRule::Open, write)
}

async fn grant(State(api): State<Api>, request: Request) -> Result<Response, Refusal> {
    let form = body::read(request, FORM_MAX_BYTES).await?;
    let Some(assertion) = assertion(&form) else {
        return Ok(denied("unsupported_grant_type", "the grant type must be jwt-bearer, in a form"));
    };
    match api.service().grant(&assertion, AUDIENCES).await {
        Ok(token) => {
            let reply =
                json!({"access_token": token, "expires_in": EXPIRES_IN_SECONDS, "token_type": "Bearer"});
            // RFC 6749, section 5.1: no cache keeps a token.
            let no_store = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            Ok(([no_store], Json(reply)).into_response())
        }
        Err(AssertionRefusal::Invalid(why)) => Ok(denied("invalid_grant", why)),
        Err(AssertionRefusal::Server(problem)) => Err(problem.into()),
    }
}

/// Returns the assertion of a form with the right grant type.
fn assertion(form: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(form).ok()?.trim();
    // A form is encoded like a query, for which a decoder exists.
    let uri: Uri = format!("/?{text}").parse().ok()?;
    let Query(pairs): Query<Vec<(String, String)>> = Query::try_from_uri(&uri).ok()?;
    let field = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    field("grant_type").filter(|kind| *kind == GRANT_TYPE)?;
    // Without an assertion the request is refused for a bad assertion, not for another grant type.
    Some(field("assertion").cloned().unwrap_or_default())
}

fn denied(error: &str, description: &str) -> Response {
    let body = json!({"error": error, "error_description": description});
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}

/// Writes a problem of ours.
fn write(response: &mut Response, problem: &Problem, _: &str) {
    let (status, error) = match problem.code {
        ErrorCode::Unavailable | ErrorCode::RateLimited => {
            (StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable")
        }
        ErrorCode::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "server_error"),
        ErrorCode::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "invalid_request"),
        _ => (StatusCode::BAD_REQUEST, "invalid_request"),
    };
    let body = json!({"error": error, "error_description": refused::line(problem)}).to_string();
    refused::put(response, problem, status, "application/json", body);
}
