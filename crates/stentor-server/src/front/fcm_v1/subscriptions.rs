//! Topics of a registration as resources: `registrations/{token}/topicSubscriptions`.

use axum::Json;
use axum::extract::{Path, Query, Request, State};
use serde_json::{Value, json};
use stentor_core::id::DeviceId;
use stentor_core::name::TopicName;

use super::authenticate;
use super::rpc_status::{RpcStatus, SendRefusal};
use crate::contract::table::{ListDeviceTopics, SubscribeDevice, UnsubscribeDevice};
use crate::contract::{ErrorCode, Serve};
use crate::face::Api;
use crate::front::sending::{DEFAULT_ROUTE, Sender, TokenStanding};

const PAGE_USUAL_COUNT: usize = 1_000;
const PAGE_MAX_COUNT: usize = 2_000;

type SubscriptionReply = Result<Json<Value>, SendRefusal>;
/// The parameters of a request; of duplicate names the last one counts.
type QueryPairs = Query<Vec<(String, String)>>;

/// The registration that a request names.
struct Subscriber<'a> {
    sender: Sender<'a>,
    project: String,
    token: String,
}

/// Subscribes the registration to the topic named by `topicName`.
pub(super) async fn create(
    State(api): State<Api>,
    Path((project, token)): Path<(String, String)>,
    Query(pairs): QueryPairs,
    request: Request,
) -> SubscriptionReply {
    let subscriber = Subscriber::new(&api, project, token, request).await?;
    let topic = topic_of(parameter(&pairs, "topicName", "topic_name").unwrap_or_default())?;
    // An existing subscription gets 409, which SDKs treat as success.
    if subscriber.has(&topic).await? {
        return Err(RpcStatus::already_exists().into());
    }
    subscriber.subscribe(topic).await
}

/// Lists the topics, in pages.
pub(super) async fn list(
    State(api): State<Api>,
    Path((project, token)): Path<(String, String)>,
    Query(pairs): QueryPairs,
    request: Request,
) -> SubscriptionReply {
    let subscriber = Subscriber::new(&api, project, token, request).await?;
    let page_size = parameter(&pairs, "pageSize", "page_size").map_or(Ok(0), str::parse::<usize>);
    let page_size = page_size.map_err(|_| RpcStatus::violation("page_size", "must be a number"))?;
    // Zero means the default, and a larger number than the maximum means the maximum (AIP-158).
    let count = if page_size == 0 { PAGE_USUAL_COUNT } else { page_size.min(PAGE_MAX_COUNT) };
    let after = parameter(&pairs, "pageToken", "page_token").unwrap_or_default();
    let mut topics = subscriber.topics().await?;
    // A page token is a name, so that the order must be stable.
    topics.sort();
    let mut rest = topics.into_iter().filter(|topic| topic.as_str() > after);
    let page: Vec<_> = rest.by_ref().take(count).collect();
    let shown: Vec<_> = page.iter().map(|topic| subscriber.shown(topic)).collect();
    let mut reply = json!({"topicSubscriptions": shown});
    // A full page may be the last one, so that the next entry is checked.
    if let (Some(last), Some(_)) = (page.last(), rest.next()) {
        reply["nextPageToken"] = last.as_str().into();
    }
    Ok(Json(reply))
}

/// Shows one subscription.
pub(super) async fn show(
    State(api): State<Api>,
    Path((project, token, topic)): Path<(String, String, String)>,
    request: Request,
) -> SubscriptionReply {
    let subscriber = Subscriber::new(&api, project, token, request).await?;
    let topic = topic_of(&topic)?;
    match subscriber.has(&topic).await? {
        true => Ok(Json(subscriber.shown(topic.as_str()))),
        false => Err(RpcStatus::not_found().into()),
    }
}

/// Updates a subscription, which has no mutable field; with `allowMissing` it is created.
pub(super) async fn change(
    State(api): State<Api>,
    Path((project, token, topic)): Path<(String, String, String)>,
    Query(pairs): QueryPairs,
    request: Request,
) -> SubscriptionReply {
    let subscriber = Subscriber::new(&api, project, token, request).await?;
    let topic = topic_of(&topic)?;
    match (subscriber.has(&topic).await?, allows_missing(&pairs)) {
        (true, _) => Ok(Json(subscriber.shown(topic.as_str()))),
        (false, true) => subscriber.subscribe(topic).await,
        (false, false) => Err(RpcStatus::not_found().into()),
    }
}

/// Deletes a subscription.
pub(super) async fn remove(
    State(api): State<Api>,
    Path((project, token, topic)): Path<(String, String, String)>,
    Query(pairs): QueryPairs,
    request: Request,
) -> SubscriptionReply {
    let subscriber = Subscriber::new(&api, project, token, request).await?;
    let topic = topic_of(&topic)?;
    let is_there = subscriber.has(&topic).await?;
    if let (true, Some(device)) = (is_there, subscriber.device().await?) {
        let caller = subscriber.sender.caller;
        Serve::<UnsubscribeDevice>::serve(subscriber.sender.api, caller, (device, topic), ()).await?;
    } else if !allows_missing(&pairs) {
        return Err(RpcStatus::not_found().into());
    }
    Ok(Json(json!({})))
}

impl<'a> Subscriber<'a> {
    async fn new(
        api: &'a Api,
        project: String,
        token: String,
        request: Request,
    ) -> Result<Self, SendRefusal> {
        let (parts, _) = request.into_parts();
        let caller = authenticate(&parts, api, &project).await?.caller;
        Ok(Self { sender: Sender { api, caller, repeat: None, receipt: None }, project, token })
    }

    async fn standing(&self) -> Result<TokenStanding, SendRefusal> {
        let standings = self.sender.standings(std::slice::from_ref(&self.token), DEFAULT_ROUTE).await?;
        Ok(standings.into_iter().next().unwrap_or(TokenStanding::Invalid))
    }

    /// Returns the device, if any. Fails with "not found" for an invalid or unregistered token.
    async fn device(&self) -> Result<Option<DeviceId>, SendRefusal> {
        match self.standing().await? {
            TokenStanding::Invalid | TokenStanding::Retired(_) => Err(RpcStatus::not_found().into()),
            TokenStanding::Unknown(_) => Ok(None),
            TokenStanding::Held(device) | TokenStanding::Replaced(device) => Ok(Some(device.id)),
        }
    }

    async fn topics(&self) -> Result<Vec<String>, SendRefusal> {
        let Some(device) = self.device().await? else { return Ok(Vec::new()) };
        let sender = &self.sender;
        Ok(Serve::<ListDeviceTopics>::serve(sender.api, sender.caller, device, ()).await?.topics)
    }

    async fn has(&self, topic: &TopicName) -> Result<bool, SendRefusal> {
        Ok(self.topics().await?.iter().any(|known| known == topic.as_str()))
    }

    /// Subscribes the device; registers it if it is unknown.
    async fn subscribe(&self, topic: TopicName) -> SubscriptionReply {
        let listed = self.sender.listed(&self.token, self.standing().await?).await?;
        let device = listed.ok_or_else(RpcStatus::not_found)?;
        let subject = (device, topic.clone());
        let sender = &self.sender;
        match Serve::<SubscribeDevice>::serve(sender.api, sender.caller, subject, ()).await {
            Err(problem) if problem.code == ErrorCode::LimitReached => {
                Err(RpcStatus::violation("topic_name", problem.detail).into())
            }
            Err(problem) => Err(problem.into()),
            Ok(()) => Ok(Json(self.shown(topic.as_str()))),
        }
    }

    fn shown(&self, topic: &str) -> Value {
        let Self { project, token, .. } = self;
        json!({"name": format!("projects/{project}/registrations/{token}/topicSubscriptions/{topic}")})
    }
}

fn topic_of(name: &str) -> Result<TopicName, RpcStatus> {
    TopicName::new(name).map_err(|invalid| RpcStatus::violation("topic_name", invalid.problem))
}

fn parameter<'a>(pairs: &'a [(String, String)], camel: &str, snake: &str) -> Option<&'a str> {
    let named = |(name, _): &&(String, String)| name == camel || name == snake;
    pairs.iter().rev().find(named).map(|(_, value)| value.as_str())
}

fn allows_missing(pairs: &[(String, String)]) -> bool {
    parameter(pairs, "allowMissing", "allow_missing") == Some("true")
}
