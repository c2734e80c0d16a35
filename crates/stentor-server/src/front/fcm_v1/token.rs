//! The token endpoint: a signed assertion for a short-lived access token (RFC 7523), refusals as RFC 6749 words them.

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
/// Longest form: the longest assertion with its name.
const FORM_MAX_BYTES: usize = 16 * 1_024;
/// What an access token's life is said to be: a second less than it is, as there.
const EXPIRES_IN_SECONDS: u64 = 3_599;
/// Audiences that clients have built in, whatever the file of the account says.
const AUDIENCES: &[&str] = &[
    "https://oauth2.googleapis.com/token",
    "https://accounts.google.com/o/oauth2/token",
    "https://www.googleapis.com/oauth2/v4/token",
];

/// Builds the routes of the endpoint: the path in our files, and those that clients have built in.
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

/// Finds the assertion of a form of the right kind.
fn assertion(form: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(form).ok()?.trim();
    // A form is written as a query is, and the decoder of queries is there.
    let uri: Uri = format!("/?{text}").parse().ok()?;
    let Query(pairs): Query<Vec<(String, String)>> = Query::try_from_uri(&uri).ok()?;
    let field = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    field("grant_type").filter(|kind| *kind == GRANT_TYPE)?;
    // Without an assertion it is refused as a bad one, and not as another grant.
    Some(field("assertion").cloned().unwrap_or_default())
}

fn denied(error: &str, description: &str) -> Response {
    let body = json!({"error": error, "error_description": description});
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}

/// Writes a refusal of ours.
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
