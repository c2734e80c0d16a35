//! What devices send to their app, as Server-Sent Events: for scripts, which acknowledge by the operation.

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

/// Pause after which a comment is written, so that proxies keep the connection and a key that was removed is noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// What a client waits before it connects again, in milliseconds.
const BEGINNING: &str = ": what your devices send\nretry: 1000\n\n";
const ALIVE: &str = ": alive\n\n";

/// Returns the routes of this noun.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(events))
}

/// One message of a device, as an event tells it.
#[derive(Serialize)]
struct UpstreamEvent<'a> {
    id: UpstreamId,
    device: DeviceId,
    key: &'a str,
    data: Value,
    /// Which attempt to hand it over this is.
    attempt: u32,
    /// Whether it was handed over before, and may have been worked on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    again: bool,
}

/// Streams what devices send as Server-Sent Events: `event: message` with `id`, `device`, `key`, `data`, `attempt`, and `again`
/// when it was handed over before. Acknowledge what was worked on by its ids; at most 100 are on their way and not acknowledged,
/// and what is not acknowledged comes again on the next stream. Streams of one app share the messages.
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

/// A stream to one client; what it was given and has not acknowledged is free again when it ends.
struct EventStream {
    api: Api,
    parts: Parts,
    consumer: UpstreamConsumer,
    connection: Option<RequestConnection>,
    begun: bool,
    _place: SharePart,
    /// A connection whose stream has nothing to tell is not idle.
    _at_work: Option<AtWork>,
}

impl EventStream {
    /// Returns what is written next; none when the stream ends: the server stops, or the key may not read on.
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
        // Asked anew each time, so that it ends when the key is removed.
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
                tracing::warn!(%error, "what devices sent cannot be read");
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
