//! The legacy HTTP API of GCM and FCM: `POST /gcm/send` and `/fcm/send`, in JSON and plain text, and the device groups of
//! `/gcm/notification`. Sources: "GCM HTTP Connection Server" and "Server Reference", as kept in AOSP.

mod content;
mod groups;
mod multicast;
mod plain;
mod reply;
mod request;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use serde_json::{Map, Value};
use stentor_wire::json::numbers_as_texts;

use super::nulls::{decode_without_nulls, value_without_nulls};
use super::refused::{self, line};
use super::sending::{Sender, is_of_server};
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::decode::without_mark;
use crate::face::Api;
use crate::face::http::auth::{AuthenticatedCaller, authenticated_caller};
use crate::face::http::headers::header_text;
use crate::face::http::refusal::{Refusal, WriteRefusal};
use crate::face::http::{EntryRule, LimitedRouter, Routes, body};

use reply::{GcmError, SendReply, TokenResult};

pub(super) use groups::{group_of_key, is_key};

/// The default of Retry-After.
const RETRY_AFTER_SECONDS: u32 = 5;

/// Builds the routes of this front.
pub(super) fn router(api: &Api) -> LimitedRouter {
    let write: WriteRefusal = write;
    Routes::new()
        .route("/gcm/send", post(send))
        .route("/fcm/send", post(send))
        .route("/gcm/notification", get(groups::look_up).post(groups::change))
        .route("/fcm/notification", get(groups::look_up).post(groups::change))
        .limited(api, api.clone(), EntryRule::Keyed, write)
}

async fn send(State(api): State<Api>, request: Request) -> Result<Response, Refusal> {
    let (AuthenticatedCaller { caller, key }, is_json, bytes) = read(&api, request).await?;
    let repeat = key.as_ref().map(|key| (key, *blake3::hash(&bytes).as_bytes()));
    let sender = Sender { api: &api, caller, repeat, receipt: None };
    if is_json {
        // Devices receive the values of `data` as texts.
        let bytes = numbers_as_texts(without_mark(&bytes), "data");
        let reply = multicast::send(&sender, decode_without_nulls(&bytes)?).await?;
        return Ok(axum::Json(reply).into_response());
    }
    let reply = plain::send(&sender, &bytes).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=UTF-8")], reply).into_response())
}

/// Sends the message in the fields to one recipient. Returns the error word if it is not sent.
pub(super) async fn send_one(
    sender: &Sender<'_>,
    fields: Map<String, Value>,
) -> ServiceResult<Option<&'static str>> {
    Ok(match multicast::send(sender, value_without_nulls(fields)?).await? {
        SendReply::Tokens { results, .. } => results.iter().find_map(TokenResult::error),
        SendReply::Refused { error } => Some(error),
        // A group is one recipient here, and no member of it can be reached.
        SendReply::Group { success: 0, .. } => Some(GcmError::NotRegistered.as_str()),
        SendReply::Group { .. } | SendReply::Audience { .. } => None,
    })
}

/// Authenticates the caller and reads the body. Also returns whether the body is JSON.
async fn read(api: &Api, request: Request) -> ServiceResult<(AuthenticatedCaller, bool, Bytes)> {
    let (parts, body) = request.into_parts();
    // Before the body, so that no body is read for a caller without a key.
    let from = authenticate(&parts, api).await?;
    let is_json = is_json(&parts.headers);
    let bytes = body::read(Request::from_parts(parts, body), api.large_body_max_bytes()).await?;
    Ok((from, is_json, bytes))
}

/// Authenticates the caller by `Authorization: key=…`.
async fn authenticate(parts: &Parts, api: &Api) -> ServiceResult<AuthenticatedCaller> {
    let text = header_text(&parts.headers, "authorization")?.unwrap_or_default();
    let key = text.trim().split_at_checked(4).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("key="));
    authenticated_caller(parts, api, key.map(|(_, key)| key.trim())).await
}

/// Returns true for JSON; a body without content type is plain text.
fn is_json(headers: &HeaderMap) -> bool {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    given.trim_start().to_ascii_lowercase().starts_with("application/json")
}

/// Writes a refusal: 400 if the request cannot be parsed, 401 for the key, 503 with `Retry-After` if it may be repeated.
fn write(response: &mut Response, problem: &Problem, _: &str) {
    let status = match problem.code {
        ErrorCode::Unauthorized | ErrorCode::Forbidden => StatusCode::UNAUTHORIZED,
        ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorCode::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
        code if is_of_server(code) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    };
    let mut problem = problem.clone();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        problem.retry_after_seconds.get_or_insert(RETRY_AFTER_SECONDS);
    }
    let (media_type, body) = match problem.field.as_deref() == Some(groups::FIELD) {
        true => ("application/json; charset=UTF-8", serde_json::json!({"error": problem.detail}).to_string()),
        false => ("text/plain; charset=UTF-8", format!("{}\n", line(&problem))),
    };
    refused::put(response, &problem, status, media_type, body);
}
