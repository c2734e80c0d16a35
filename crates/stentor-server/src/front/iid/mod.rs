//! The older API of topics, `iid.googleapis.com`: subscribes and unsubscribes many tokens, and shows the state of a token.

use axum::Json;
use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use stentor_core::device::{Device, Platform};
use stentor_core::id::DeviceId;
use stentor_core::name::TopicName;

use super::nulls::decode_without_nulls;
use super::refused;
use super::sending::{DEFAULT_ROUTE, Sender, TokenStanding};
use crate::contract::table::{ListDeviceTopics, Subscribe, Unsubscribe};
use crate::contract::topics::SubscriptionRequest;
use crate::contract::{ErrorCode, Problem, Serve, ServiceResult};
use crate::face::Api;
use crate::face::http::auth::{AuthenticatedCaller, authenticated_caller};
use crate::face::http::headers::header_text;
use crate::face::http::refusal::{Refusal, WriteRefusal};
use crate::face::http::{EntryRule, LimitedRouter, Routes, body};

/// Most tokens of one request, as documented.
const TOKENS_MAX_COUNT: usize = 1_000;
const TOPIC_PREFIX: &str = "/topics/";

/// Builds the routes of this front.
pub(super) fn router(api: &Api) -> LimitedRouter {
    let write: WriteRefusal = write;
    Routes::new()
        .route("/iid/v1:batchAdd", post(add))
        .route("/iid/v1:batchRemove", post(remove))
        .route("/iid/info/{token}", get(info))
        .limited(api, api.clone(), EntryRule::Keyed, write)
}

/// Tokens to subscribe to a topic or to unsubscribe from it.
#[derive(Deserialize)]
struct TopicBatch {
    #[serde(default)]
    to: String,
    #[serde(default, alias = "registrationTokens")]
    registration_tokens: Vec<String>,
}

/// The result of one token.
enum BatchMember {
    /// A device of ours.
    Device(DeviceId),
    /// Unknown, and in no topic.
    Absent,
    /// Unregistered.
    Dead,
    /// Not a token.
    Malformed,
}

async fn add(State(api): State<Api>, request: Request) -> Result<Json<Value>, Refusal> {
    let (from, batch) = read(&api, request).await?;
    let topic = batch.topic()?;
    let sender = Sender { api: &api, caller: from.caller, repeat: None, receipt: None };
    let mut members = Vec::with_capacity(batch.registration_tokens.len());
    let standings = sender.standings(&batch.registration_tokens, DEFAULT_ROUTE).await?;
    for (token, standing) in batch.registration_tokens.iter().zip(standings) {
        // It would be registered again below, and the API reports NOT_FOUND for an unregistered token.
        members.push(match standing {
            TokenStanding::Retired(_) => BatchMember::Dead,
            standing => {
                sender.listed(token, standing).await?.map_or(BatchMember::Malformed, BatchMember::Device)
            }
        });
    }
    let devices = devices(&members);
    if devices.devices.is_empty() {
        return Ok(results(&members, None));
    }
    match Serve::<Subscribe>::serve(&api, from.caller, topic, devices).await {
        Err(problem) if problem.code == ErrorCode::LimitReached => {
            Ok(results(&members, Some("TOO_MANY_TOPICS")))
        }
        done => Ok(done.map(|_| results(&members, None))?),
    }
}

async fn remove(State(api): State<Api>, request: Request) -> Result<Json<Value>, Refusal> {
    let (from, batch) = read(&api, request).await?;
    let topic = batch.topic()?;
    let sender = Sender { api: &api, caller: from.caller, repeat: None, receipt: None };
    let member = |standing| match standing {
        TokenStanding::Invalid => BatchMember::Malformed,
        TokenStanding::Unknown(_) => BatchMember::Absent,
        TokenStanding::Retired(_) => BatchMember::Dead,
        TokenStanding::Held(device) | TokenStanding::Replaced(device) => BatchMember::Device(device.id),
    };
    let standings = sender.standings(&batch.registration_tokens, DEFAULT_ROUTE).await?;
    let members: Vec<_> = standings.into_iter().map(member).collect();
    let devices = devices(&members);
    if !devices.devices.is_empty() {
        match Serve::<Unsubscribe>::serve(&api, from.caller, topic, devices).await {
            // A topic that does not exist has no subscribers.
            Err(problem) if problem.code != ErrorCode::NotFound => return Err(problem.into()),
            Err(_) | Ok(_) => {}
        }
    }
    Ok(results(&members, None))
}

/// Returns the state of a token, with its topics if `details=true`. Times of subscription are not stored.
async fn info(
    State(api): State<Api>,
    Path(token): Path<String>,
    Query(pairs): Query<Vec<(String, String)>>,
    request: Request,
) -> Result<Json<Value>, Refusal> {
    let (parts, _) = request.into_parts();
    let AuthenticatedCaller { caller, .. } = authenticate(&parts, &api).await?;
    let sender = Sender { api: &api, caller, repeat: None, receipt: None };
    let Some(TokenStanding::Held(device) | TokenStanding::Replaced(device)) =
        sender.standings(&[token], DEFAULT_ROUTE).await?.pop()
    else {
        return Err(Problem::not_found("token").into());
    };
    let mut shown = json!({"authorizedEntity": caller.app(), "platform": platform(&device)});
    if pairs.iter().any(|(name, value)| name == "details" && value == "true") {
        let topics = Serve::<ListDeviceTopics>::serve(&api, caller, device.id, ()).await?.topics;
        let topics: Map<_, _> = topics.into_iter().map(|topic| (topic, json!({}))).collect();
        shown["rel"] = json!({"topics": topics});
    }
    Ok(Json(shown))
}

impl TopicBatch {
    fn topic(&self) -> ServiceResult<TopicName> {
        let count = self.registration_tokens.len();
        if count == 0 {
            return Err(wrong("MissingRegistrationTokens"));
        }
        if count > TOKENS_MAX_COUNT {
            return Err(wrong("InvalidNumberOfRegistrationTokens"));
        }
        let name = self.to.strip_prefix(TOPIC_PREFIX).ok_or_else(|| wrong("InvalidTopicName"))?;
        TopicName::new(name).map_err(|_| wrong("InvalidTopicName"))
    }
}

async fn read(api: &Api, request: Request) -> ServiceResult<(AuthenticatedCaller, TopicBatch)> {
    let (parts, body) = request.into_parts();
    let from = authenticate(&parts, api).await?;
    let bytes = body::read(Request::from_parts(parts, body), api.large_body_max_bytes()).await?;
    let batch = decode_without_nulls(&bytes).map_err(|_| wrong("InvalidJson"))?;
    Ok((from, batch))
}

/// Authenticates the caller by an access token, which `access_token_auth: true` announces, or by a key after `key=`.
async fn authenticate(parts: &Parts, api: &Api) -> ServiceResult<AuthenticatedCaller> {
    let text = header_text(&parts.headers, "authorization")?.unwrap_or_default();
    authenticated_caller(parts, api, text.strip_prefix("key=").map(str::trim)).await
}

fn devices(members: &[BatchMember]) -> SubscriptionRequest {
    let device = |member: &BatchMember| match member {
        BatchMember::Device(id) => Some(*id),
        BatchMember::Absent | BatchMember::Dead | BatchMember::Malformed => None,
    };
    SubscriptionRequest { devices: members.iter().filter_map(device).collect() }
}

fn results(members: &[BatchMember], failed: Option<&str>) -> Json<Value> {
    let one = |member: &BatchMember| match (member, failed) {
        (BatchMember::Malformed, _) => json!({"error": "INVALID_ARGUMENT"}),
        (BatchMember::Dead, _) => json!({"error": "NOT_FOUND"}),
        (BatchMember::Device(_), Some(error)) => json!({"error": error}),
        (BatchMember::Device(_) | BatchMember::Absent, _) => json!({}),
    };
    Json(json!({"results": members.iter().map(one).collect::<Vec<_>>()}))
}

const fn platform(device: &Device) -> &'static str {
    match device.platform {
        Platform::Android => "ANDROID",
        Platform::Apple => "IOS",
        _ => "WEBPUSH",
    }
}

fn wrong(error: &'static str) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, error)
}

/// Writes a refusal: a status and a word.
fn write(response: &mut Response, problem: &Problem, _: &str) {
    let status = match problem.code {
        ErrorCode::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorCode::Forbidden => StatusCode::FORBIDDEN,
        ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::RateLimited | ErrorCode::QueueFull => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    };
    let body = json!({"error": refused::line(problem)}).to_string();
    refused::put(response, problem, status, "application/json; charset=UTF-8", body);
}
