//! Upstream messages as Server-Sent Events, for scripts, which acknowledge them with the operation.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::unfold;
use serde::Serialize;
use serde_json::Value;
use stentor_core::id::{DeviceId, UpstreamId};
use stentor_core::upstream::UpstreamMessage;
use stentor_gateway::UpstreamConsumer;
use tokio::time::timeout;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ApiResult;
use crate::contract::upstream::said;
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::Api;
use crate::face::http::auth::authenticated_caller;
use crate::listen::{AtWork, RequestConnection};
use crate::shares::{ShareExhausted, SharePart};

/// Interval of comments, which keep proxies from closing the connection and let the server notice a deleted key.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// First lines of a stream; the client reconnects after 1,000 milliseconds.
const BEGINNING: &str = ": messages from your devices\nretry: 1000\n\n";
const ALIVE: &str = ": alive\n\n";

/// Returns the routes for upstream events.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(events))
}

/// An upstream message as an event.
#[derive(Serialize)]
struct UpstreamEvent<'a> {
    id: UpstreamId,
    device: DeviceId,
    key: &'a str,
    data: Value,
    /// Number of this delivery to the app, from 1.
    attempt: u32,
    /// True if the message was delivered before and may have been processed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    again: bool,
}

/// Streams upstream messages as Server-Sent Events: `event: message` with `id`, `device`, `key`, `data`, `attempt`, and `again` if it was
/// delivered before. Acknowledge processed messages by their ids. At most 100 messages are in flight and unacknowledged; unacknowledged
/// messages are delivered again on the next stream. Streams of one app share the messages.
#[utoipa::path(get, path = "/v1/upstream", tag = "upstream", responses((status = 200, content_type = "text/event-stream", body = String)))]
async fn events(State(api): State<Api>, request: Request) -> ApiResult<Response> {
    let (parts, _) = request.into_parts();
    let caller = authenticated_caller(&parts, &api, None).await?.caller;
    let consumer = api.service().consume_upstream(caller)?;
    let place = api.limits().watches.take(caller.app(), 1).map_err(no_place)?;
    let connection = parts.extensions.get::<RequestConnection>().cloned();
    let at_work = connection.as_ref().map(RequestConnection::begin);
    let stream =
        EventStream { api, parts, consumer, connection, begun: false, _place: place, _at_work: at_work };
    let pieces = unfold(stream, async |mut stream| Some((Ok::<_, Problem>(stream.next().await?), stream)));
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// A stream to one client. Its unacknowledged messages become available again when it ends.
struct EventStream {
    api: Api,
    parts: Parts,
    consumer: UpstreamConsumer,
    connection: Option<RequestConnection>,
    begun: bool,
    _place: SharePart,
    /// Marks the connection as busy, so that a stream without messages does not count as idle.
    _at_work: Option<AtWork>,
}

impl EventStream {
    /// Returns the next piece of the stream; `None` if the server stops or the key may no longer read.
    async fn next(&mut self) -> Option<String> {
        if !self.begun {
            self.begun = true;
            return Some(BEGINNING.to_owned());
        }
        let stopping = stopping(self.connection.clone());
        let found = tokio::select! {
            found = timeout(HEARTBEAT, self.consumer.next()) => found,
            () = stopping => return None,
        };
        // Checked each time, so that the stream ends when the key is deleted.
        self.still_allowed().await.ok()?;
        match found {
            Err(_) => Some(ALIVE.to_owned()),
            Ok(Ok(messages)) => match messages.iter().map(event).collect::<serde_json::Result<_>>() {
                Ok(events) => Some(events),
                Err(error) => {
                    tracing::error!(%error, "what devices sent cannot be written as JSON");
                    None
                }
            },
            Ok(Err(error)) => {
                tracing::warn!(%error, "the messages of devices cannot be read");
                None
            }
        }
    }

    async fn still_allowed(&self) -> ServiceResult<()> {
        let caller = authenticated_caller(&self.parts, &self.api, None).await?.caller;
        caller.allow::<crate::contract::table::ListUpstream>()
    }
}

async fn stopping(connection: Option<RequestConnection>) {
    match connection {
        Some(connection) => connection.stopping().await,
        None => std::future::pending().await,
    }
}

fn event(message: &UpstreamMessage) -> serde_json::Result<String> {
    let event = UpstreamEvent {
        id: message.id,
        device: message.device,
        key: &message.key,
        data: said(message),
        attempt: message.attempts.saturating_add(1),
        again: message.attempts > 0,
    };
    let data = serde_json::to_string(&event)?;
    Ok(format!("event: message\nid: {}\ndata: {data}\n\n", message.id))
}

fn no_place(spent: ShareExhausted) -> Problem {
    let detail = format!("as many streams{} are open as are allowed at once", spent.whose());
    Problem::new(ErrorCode::RateLimited, detail)
}
