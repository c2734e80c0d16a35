//! Messages over plain HTTP, for `curl` and for people: Server-Sent Events (WHATWG HTML, 9.2) and long poll with a cursor.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, Request, State};
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use axum::{Extension, Json};
use futures_util::stream::{once, unfold};
use futures_util::{Stream, StreamExt as _};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use stentor_core::id::MessageId;
use stentor_core::message::Message;
use stentor_gateway::limits::WINDOW_MAX_COUNT;
use stentor_gateway::web_push::PushKeys;
use stentor_gateway::{
    DeliveryCursor, DeviceIdentity, DeviceProtocol, DeviceSession, Gateway, PendingMessage, SessionEvent,
};

use super::GatewayApi;
use super::device_login::LoggedIn;
use super::message_view::message_json;
use crate::contract::{ErrorCode, Problem, REPLY_MAX_BYTES, ServiceResult};
use crate::decode::decode;
use crate::face::http::headers::header_text;
use crate::face::http::refusal::Refusal;
use crate::face::http::{RequestPermit, body};
use crate::listen::{AtWork, RequestConnection};

/// Silence after which a comment shows that the connection lives.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// Longest wait of a poll.
const WAIT_MAX_SECONDS: u64 = 300;
const WAIT_USUAL_SECONDS: u64 = 30;
/// Messages that one request confirms.
const CONFIRMED_MAX_COUNT: usize = 1_000;

/// What a device says of its stream.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsQuery {
    /// `written` to have each message count as delivered once it is written; `receipts`, the usual, to wait for the device's word.
    #[serde(default)]
    confirm: Confirming,
    /// Confirms what the event of this id, and those before it, gave.
    #[serde(default)]
    after: Option<DeliveryCursor>,
}

/// When a message counts as delivered.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Confirming {
    #[default]
    Receipts,
    Written,
}

/// `GET /gateway/v1/events`: each message is one event, whose id names all that the stream has given and that is not confirmed.
pub(super) async fn events(
    State(own): State<GatewayApi>,
    LoggedIn(identity): LoggedIn,
    Query(query): Query<EventsQuery>,
    connection: Option<Extension<RequestConnection>>,
    Extension(permit): Extension<RequestPermit>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    // What a browser repeats of itself when it connects again.
    let last = header_text(&headers, "last-event-id")?.and_then(|text| text.parse().ok());
    // Before the session is opened, which would be given the same once more.
    confirm_given(&own.gateway, identity, query.after.or(last)).await?;
    let session = own.gateway.open(identity, DeviceProtocol::Stream, WINDOW_MAX_COUNT);
    // Read once the session is open: who changes the keys ends the sessions that are open.
    let keys = own.gateway.device_keys(identity).await.map_err(Problem::from)?;
    let stream = DeviceEvents {
        session,
        keys,
        gateway: own.gateway,
        confirming: query.confirm,
        ready: Vec::new(),
        written: Vec::new(),
        given: Vec::new(),
        _permit: permit,
        _at_work: connection.map(|Extension(connection)| connection.begin()),
    };
    let heartbeat = KeepAlive::new().interval(HEARTBEAT);
    // Browsers and proxies hand an answer on with its first bytes: until then a device does not know that it listens.
    let opening = once(ready(Ok(Event::default().comment("open"))));
    Ok(Sse::new(opening.chain(unfold(stream, DeviceEvents::next))).keep_alive(heartbeat))
}

/// The messages of one device as events.
struct DeviceEvents {
    session: DeviceSession,
    /// For which messages are sealed.
    keys: Option<PushKeys>,
    gateway: Gateway,
    confirming: Confirming,
    /// To be written, the last first; each is made into an event when it is its turn.
    ready: Vec<Arc<Message>>,
    /// Written, when the next is asked for.
    written: Vec<MessageId>,
    /// What its events have given so far, as far as it is not confirmed.
    given: Vec<MessageId>,
    /// Its place among those whose answers last, in the device's name.
    _permit: RequestPermit,
    /// A connection whose stream has nothing to tell is not idle.
    _at_work: Option<AtWork>,
}

impl DeviceEvents {
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        if self.ready.is_empty() {
            let written = std::mem::take(&mut self.written);
            // Only when more is asked for: until then the last event may still be on its way out.
            if self.confirming == Confirming::Written {
                self.session.confirm(&written);
            }
            match self.session.next().await {
                Ok(SessionEvent::Deleted(count)) => {
                    let event = Event::default().event("deleted").data(count.to_string());
                    return Some((Ok(event), self));
                }
                Ok(SessionEvent::Messages(messages)) => self.take(&messages),
                Err(_) => return None,
            }
        }
        let event = self.ready.pop().and_then(|message| self.event(&message));
        // What cannot be sealed is not given, and so not confirmed: it comes with the next connection.
        Some((Ok(event.unwrap_or_else(|| Event::default().comment("not sealed"))), self))
    }

    fn take(&mut self, messages: &[PendingMessage]) {
        let unconfirmed = self.session.unconfirmed_messages();
        self.given.retain(|given| unconfirmed.contains(given));
        self.ready.extend(messages.iter().rev().map(|one| Arc::clone(&one.message)));
    }

    /// Writes one message as an event; `None` when it cannot be sealed.
    fn event(&mut self, message: &Message) -> Option<Event> {
        let view = message_json(message, self.gateway.clock().now(), self.keys.as_ref()).ok()?;
        self.given.push(message.id);
        self.written.push(message.id);
        let cursor = DeliveryCursor::new(&self.given).map(|cursor| cursor.to_string());
        Some(Event::default().event("message").id(cursor.unwrap_or_default()).data(view))
    }
}

/// What a device asks of a poll.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PollQuery {
    /// Confirms what the reply with this cursor gave.
    #[serde(default)]
    after: Option<DeliveryCursor>,
    #[serde(default)]
    wait_seconds: Option<u64>,
    #[serde(default)]
    max: Option<usize>,
}

/// What there is for a device.
#[derive(Serialize)]
pub(super) struct PollView {
    messages: Vec<Box<RawValue>>,
    /// To be given as `after` by the next poll.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<DeliveryCursor>,
    /// How many messages were deleted because too many waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<usize>,
}

/// `GET /gateway/v1/messages`: waits for messages and returns them.
pub(super) async fn poll(
    State(own): State<GatewayApi>,
    LoggedIn(identity): LoggedIn,
    Query(query): Query<PollQuery>,
) -> Result<Json<PollView>, Refusal> {
    let wait = Duration::from_secs(query.wait_seconds.unwrap_or(WAIT_USUAL_SECONDS).min(WAIT_MAX_SECONDS));
    let max = query.max.unwrap_or(WINDOW_MAX_COUNT).clamp(1, WINDOW_MAX_COUNT);
    // Before the session, as in `events`.
    confirm_given(&own.gateway, identity, query.after).await?;
    let session = own.gateway.open(identity, DeviceProtocol::Stream, max);
    // After the opening, as in `events`.
    let keys = own.gateway.device_keys(identity).await.map_err(Problem::from)?;
    let event = match tokio::time::timeout(wait, session.next()).await {
        Ok(Ok(event)) => event,
        Ok(Err(_)) => {
            return Err(
                Problem::new(ErrorCode::Conflict, "another connection of this device took over").into()
            );
        }
        Err(_) => SessionEvent::Messages(Vec::new()),
    };
    Ok(Json(poll_view(&event, &own.gateway, keys.as_ref())))
}

fn poll_view(event: &SessionEvent, gateway: &Gateway, keys: Option<&PushKeys>) -> PollView {
    match event {
        SessionEvent::Deleted(count) => {
            PollView { messages: Vec::new(), cursor: None, deleted: Some(*count) }
        }
        SessionEvent::Messages(messages) => {
            let now = gateway.clock().now();
            let mut bytes = 0;
            let view = |one: &PendingMessage| {
                let text = message_json(&one.message, now, keys).ok()?;
                bytes += text.len();
                Some((RawValue::from_string(text).ok()?, one.message.id, bytes))
            };
            // What cannot be sealed, and what would make the reply too long, is not given, and so not confirmed: it comes with the
            // next poll.
            let given = messages.iter().filter_map(view);
            let given = given.take_while(|(_, _, bytes)| *bytes <= REPLY_MAX_BYTES);
            let (messages, given): (Vec<_>, Vec<_>) = given.map(|(view, id, _)| (view, id)).unzip();
            PollView { messages, cursor: DeliveryCursor::new(&given), deleted: None }
        }
    }
}

async fn confirm_given(
    gateway: &Gateway,
    identity: DeviceIdentity,
    given: Option<DeliveryCursor>,
) -> ServiceResult<()> {
    let Some(given) = given else { return Ok(()) };
    gateway.confirm(identity, given.messages()).await.map(drop).map_err(Problem::from)
}

/// What a device has got.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReceiptRequest {
    messages: Vec<MessageId>,
}

/// How many deliveries awaited that.
#[derive(Serialize)]
pub(super) struct ReceiptView {
    confirmed: usize,
}

/// `POST /gateway/v1/receipts`: what the device has got; it is on disk when this answers.
pub(super) async fn confirm(
    State(own): State<GatewayApi>,
    LoggedIn(identity): LoggedIn,
    request: Request,
) -> Result<Json<ReceiptView>, Refusal> {
    let bytes = body::read(request, own.api.body_max_bytes()).await?;
    let ReceiptRequest { messages } = decode(&bytes)?;
    if messages.len() > CONFIRMED_MAX_COUNT {
        let problem = Problem::field("messages", format!("at most {CONFIRMED_MAX_COUNT}"));
        return Err(problem.into());
    }
    let confirmed = own.gateway.confirm(identity, &messages).await.map_err(Problem::from)?;
    Ok(Json(ReceiptView { confirmed }))
}
