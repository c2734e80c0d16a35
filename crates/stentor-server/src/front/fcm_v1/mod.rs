//! The FCM HTTP v1 API: `messages:send`, the token endpoint that its clients call first, and the topics of a registration. Source: the
//! discovery document of `fcm.googleapis.com`, revision 20261023.

mod content;
mod request;
pub(super) mod rpc_status;
mod subscriptions;
mod token;

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::routing::{get, post};
use bytes::Bytes;
use serde_json::{Value, json};
use stentor_core::id::AppId;

use self::request::{FcmTarget, SendCall};
use self::rpc_status::{RpcStatus, SendRefusal};
use super::gcm_http::group_of_key;
use super::sending::{DEFAULT_ROUTE, Sender, TokenStanding, id_text};
use crate::contract::messages::{MessageRequest, Sent, TargetRequest};
use crate::contract::{ErrorCode, Problem};
use crate::face::Api;
use crate::face::http::auth::{AuthenticatedCaller, authenticated_caller};
use crate::face::http::refusal::WriteRefusal;
use crate::face::http::{EntryRule, LimitedRouter, Routes, body};

/// Builds the routes of this front.
pub(super) fn router(api: &Api) -> LimitedRouter {
    let write: WriteRefusal = rpc_status::write;
    let topics = "/v1/projects/{project}/registrations/{registration}/topicSubscriptions";
    let topic = "/v1/projects/{project}/registrations/{registration}/topicSubscriptions/{topic}";
    Routes::new()
        .route("/v1/projects/{project}/messages:send", post(send))
        .route(topics, get(subscriptions::list).post(subscriptions::create))
        .route(topic, get(subscriptions::show).patch(subscriptions::change).delete(subscriptions::remove))
        .limited(api, api.clone(), EntryRule::Keyed, write)
        // The token endpoint has error words of its own (RFC 6749), so that it stays outside these layers.
        .merge(token::router(api))
}

/// Authenticates the caller. A caller of another project learns nothing about this one.
async fn authenticate(
    parts: &axum::http::request::Parts,
    api: &Api,
    project: &str,
) -> Result<AuthenticatedCaller, SendRefusal> {
    let found = authenticated_caller(parts, api, None).await?;
    let app = found.caller.app();
    // SDKs send the project as a text or as a number; both are the app's id.
    let is_app = project.parse::<AppId>() == Ok(app) || project.parse() == Ok(app.raw());
    if is_app { Ok(found) } else { Err(RpcStatus::foreign_project().into()) }
}

async fn send(
    State(api): State<Api>,
    Path(project): Path<String>,
    request: Request,
) -> Result<Json<Value>, SendRefusal> {
    let (parts, body) = request.into_parts();
    // Before the body, so that no body is read for a caller without a key.
    let AuthenticatedCaller { caller, key } = authenticate(&parts, &api, &project).await?;
    let bytes: Bytes = body::read(Request::from_parts(parts, body), api.body_max_bytes()).await?;
    let repeat = key.as_ref().map(|key| (key, *blake3::hash(&bytes).as_bytes()));
    let sender = Sender { api: &api, caller, repeat, receipt: None };
    let call = SendCall::read(&bytes)?;
    let draft = content::draft(&call)?;
    let sent = deliver(&sender, call.fcm_target, draft).await?;
    Ok(Json(json!({"name": format!("projects/{project}/messages/{}", id_text(&sent))})))
}

/// Stores the message for its target.
async fn deliver(
    sender: &Sender<'_>,
    fcm_target: FcmTarget,
    draft: MessageRequest,
) -> Result<Sent, SendRefusal> {
    let target = match fcm_target {
        FcmTarget::Token(token) => reachable(sender, token).await?,
        FcmTarget::Group(key) => {
            // The key stands in place of a token: an unknown group is refused like an unregistered token.
            TargetRequest::Group(group_of_key(&key).map_err(|_| RpcStatus::unregistered())?.into())
        }
        FcmTarget::Topic(topic) => return to_topic(sender, topic, draft).await,
        FcmTarget::Condition(text) => TargetRequest::Condition(text),
    };
    let is_group = matches!(target, TargetRequest::Group(_));
    match sender.send(0, MessageRequest { target, ..draft }).await {
        Err(problem) if is_group && is_missing(&problem) => Err(RpcStatus::unregistered().into()),
        sent => Ok(sent?),
    }
}

/// Returns the target of a token: a device that holds it, or an unregistered token of FCM.
async fn reachable(sender: &Sender<'_>, token: String) -> Result<TargetRequest, SendRefusal> {
    let standing = sender.standings(&[token], DEFAULT_ROUTE).await?.pop().unwrap_or(TokenStanding::Invalid);
    if matches!(standing, TokenStanding::Retired(_)) {
        return Err(RpcStatus::unregistered().into());
    }
    let detail = "The registration token is not a valid FCM registration token";
    Ok(standing.target(DEFAULT_ROUTE).ok_or_else(|| RpcStatus::invalid_argument("message.token", detail))?)
}

/// Sends to a topic. A topic without subscribers is no error here: the message is stored for its empty audience, by way of a condition.
async fn to_topic(sender: &Sender<'_>, topic: String, draft: MessageRequest) -> Result<Sent, SendRefusal> {
    // The prefix belongs to the legacy API; migrated clients may still send it.
    let topic = topic.strip_prefix("/topics/").map_or(topic.clone(), str::to_owned);
    let condition = TargetRequest::Condition(format!("'{topic}' in topics"));
    let named = MessageRequest { target: TargetRequest::Topic(topic), ..draft.clone() };
    match sender.send(0, named).await {
        Err(problem) if is_missing(&problem) => {
            Ok(sender.send(0, MessageRequest { target: condition, ..draft }).await?)
        }
        sent => Ok(sent?),
    }
}

fn is_missing(problem: &Problem) -> bool {
    problem.code == ErrorCode::NotFound
}
