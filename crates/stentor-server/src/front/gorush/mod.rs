//! The API of gorush: `POST /api/push`. Sources of requests and replies: gorush's README and `PushNotification`.

mod content;
mod request;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use serde::Serialize;
use serde_json::json;

use super::nulls::decode_without_nulls;
use super::refused::{self, line};
use super::sending::{Sender, TokenStanding, is_of_server};
use crate::contract::messages::{MessageRequest, Sent, TargetRequest};
use crate::contract::{ErrorCode, Problem, REPLY_MAX_BYTES, ServiceResult};
use crate::face::Api;
use crate::face::http::auth::{AuthenticatedCaller, authenticated_caller};
use crate::face::http::refusal::{Refusal, WriteRefusal, status_of};
use crate::face::http::{EntryRule, LimitedRouter, Routes, body};
use request::{GorushNotification, PushRequest};

/// Builds the routes of this front.
pub(super) fn router(api: &Api) -> LimitedRouter {
    let write: WriteRefusal = write;
    Routes::new().route("/api/push", post(push)).limited(api, api.clone(), EntryRule::Keyed, write)
}

/// The reply to a request. `counts` is the number of requested messages, and `logs` lists those that will not be sent.
#[derive(Serialize)]
struct PushReply {
    success: &'static str,
    counts: usize,
    logs: Vec<FailedPush>,
}

/// A token that gets no message, and the reason.
#[derive(Serialize)]
struct FailedPush {
    #[serde(skip_serializing_if = "String::is_empty")]
    notif_id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    platform: &'static str,
    token: String,
    message: String,
    error: String,
}

async fn push(State(api): State<Api>, request: Request) -> Result<Json<PushReply>, Refusal> {
    let (parts, body) = request.into_parts();
    let AuthenticatedCaller { caller, key } = authenticated_caller(&parts, &api, None).await?;
    let bytes = body::read(Request::from_parts(parts, body), api.large_body_max_bytes()).await?;
    let request: PushRequest = decode_without_nulls(&bytes)?;
    let notifications = request.checked()?;
    let repeat = key.as_ref().map(|key| (key, *blake3::hash(&bytes).as_bytes()));
    let sender = Sender { api: &api, caller, repeat, receipt: None };
    let mut run =
        GorushRun { sender, count: 0, refused: None, accepted: false, logs: Vec::new(), log_bytes: 0 };
    // Sequentially: the numbers of messages follow the order of the request, and each notification sends many messages concurrently.
    for notification in notifications {
        run.send(notification).await?;
    }
    Ok(Json(run.reply()?))
}

/// The progress of a request through its notifications.
struct GorushRun<'a> {
    sender: Sender<'a>,
    /// Messages so far.
    count: usize,
    /// The first refusal that is the server's fault.
    refused: Option<Problem>,
    /// True if any message was stored.
    accepted: bool,
    logs: Vec<FailedPush>,
    /// Bytes of the message texts repeated in the logs.
    log_bytes: usize,
}

impl GorushRun<'_> {
    async fn send(&mut self, mut notification: GorushNotification) -> ServiceResult<()> {
        let route = notification.default_route()?;
        let tokens = notification.all_tokens();
        let standings = self.sender.standings(&tokens, route).await?;
        let whys: Vec<_> = standings.iter().map(|standing| unreachable(standing, &notification)).collect();
        let mut targets: Vec<_> = standings.into_iter().map(|standing| standing.target(route)).collect();
        let audience = notification.audience();
        // Tokens first, then audiences, both in names and in targets.
        let mut names: Vec<(String, &str)> = tokens.into_iter().zip(whys).collect();
        names.extend(audience.iter().map(|(name, _)| (name.clone(), "")));
        targets.extend(audience.into_iter().map(|(_, target)| Some(target)));
        let draft = content::draft(&mut notification, self.sender.api.service().now());
        let sent = match &draft {
            Ok(draft) => self.sender.send_each(self.count, targets, draft).await?,
            Err(problem) => names.iter().map(|_| Some(Err(problem.clone()))).collect(),
        };
        // Unsent messages are numbered too, so that a repeated request gives each of the others the same number.
        self.count += names.len();
        for ((token, why), sent) in names.into_iter().zip(sent) {
            self.note(&notification, token, why, sent);
        }
        Ok(())
    }

    fn note(&mut self, of: &GorushNotification, token: String, why: &str, sent: Option<ServiceResult<Sent>>) {
        let error = match sent {
            Some(Ok(_)) => {
                self.accepted = true;
                return;
            }
            Some(Err(problem)) => {
                let error = line(&problem);
                if is_of_server(problem.code) {
                    self.refused.get_or_insert(problem);
                }
                error
            }
            None => why.to_owned(),
        };
        // One text may be repeated for thousands of tokens: it is omitted once the logs are long.
        self.log_bytes += of.message.len() + of.notif_id.len();
        let repeated =
            |text: &String| if self.log_bytes <= REPLY_MAX_BYTES { text.clone() } else { String::new() };
        let (notif_id, message) = (repeated(&of.notif_id), repeated(&of.message));
        self.logs.push(FailedPush {
            notif_id,
            kind: "failed-push",
            platform: of.platform_word(),
            token,
            message,
            error,
        });
    }

    /// Returns the reply. Fails if no message was stored because of the server, so that the whole request may be repeated.
    fn reply(self) -> ServiceResult<PushReply> {
        match self.refused {
            Some(problem) if !self.accepted => Err(problem),
            _ => Ok(PushReply { success: "ok", counts: self.count, logs: self.logs }),
        }
    }
}

/// Returns the reason why no message is sent to a token, in the words in which gorush logs the answer of its push service.
const fn unreachable(standing: &TokenStanding, notification: &GorushNotification) -> &'static str {
    match (standing, notification.is_ios()) {
        (TokenStanding::Invalid, true) => "BadDeviceToken",
        (TokenStanding::Retired(_), true) => "Unregistered",
        (TokenStanding::Invalid, false) => "The registration token is not a valid FCM registration token",
        (TokenStanding::Retired(_), false) => "Requested entity was not found.",
        (TokenStanding::Unknown(_) | TokenStanding::Held(_) | TokenStanding::Replaced(_), _) => "",
    }
}

/// Returns the placeholder target of a draft, which each message replaces.
const fn no_target() -> TargetRequest {
    TargetRequest::Everyone
}

/// Returns a message without content.
const fn empty() -> MessageRequest {
    MessageRequest {
        target: no_target(),
        notification: None,
        data: std::collections::BTreeMap::new(),
        overrides: std::collections::BTreeMap::new(),
        priority: stentor_core::message::Priority::High,
        ttl_seconds: None,
        collapse_key: None,
        dry_run: false,
        send_at: None,
        exact: false,
    }
}

/// Writes a refusal as gorush does.
fn write(response: &mut Response, problem: &Problem, _: &str) {
    let status = match problem.code {
        ErrorCode::InvalidField | ErrorCode::Conflict => StatusCode::BAD_REQUEST,
        code => status_of(code),
    };
    let body = json!({"code": status.as_u16(), "message": line(problem)}).to_string();
    refused::put(response, problem, status, "application/json; charset=utf-8", body);
}
