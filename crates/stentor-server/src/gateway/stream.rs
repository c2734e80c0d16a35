//! Messages over plain HTTP, for `curl` and for people: Server-Sent Events (WHATWG HTML, 9.2), and long polling with a cursor.

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
use stentor_gateway::{
    DeliveryCursor, DeviceIdentity, DeviceProtocol, DeviceSession, Gateway, PendingMessage, SessionEvent,
};
use stentor_wire::web_push::PushKeys;

use super::GatewayApi;
use super::device_login::LoggedIn;
use super::message_view::message_json;
use crate::contract::{ErrorCode, Problem, REPLY_MAX_BYTES, ServiceResult};
use crate::decode::decode;
use crate::face::http::headers::header_text;
use crate::face::http::refusal::Refusal;
use crate::face::http::{RequestPermit, body};
use crate::listen::{AtWork, RequestConnection};

/// Time of silence after which a comment is sent to show that the connection lives.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// Longest wait of a poll.
const WAIT_MAX_SECONDS: u64 = 300;
const WAIT_USUAL_SECONDS: u64 = 30;
/// Most messages that one request may confirm.
const CONFIRMED_MAX_COUNT: usize = 1_000;

/// The parameters of a stream.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsQuery {
    /// `written`: a message counts as delivered once it is written. `receipts`, the default: once the device confirms it.
    #[serde(default)]
    confirm: Confirming,
    /// Confirms the messages of the event with this id and of those before it.
    #[serde(default)]
    after: Option<DeliveryCursor>,
}

/// The time at which a message counts as delivered.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Confirming {
    #[default]
    Receipts,
    Written,
}

/// `GET /gateway/v1/events`: each message is one event. Its id is a cursor over all messages of the stream that are not confirmed yet.
pub(super) async fn events(
    State(own): State<GatewayApi>,
    LoggedIn(identity): LoggedIn,
    Query(query): Query<EventsQuery>,
    connection: Option<Extension<RequestConnection>>,
    Extension(permit): Extension<RequestPermit>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    // A browser repeats the last id when it reconnects.
    let last = header_text(&headers, "last-event-id")?.and_then(|text| text.parse().ok());
    // Before the session is opened: otherwise it would receive the same messages again.
    confirm_given(&own.gateway, identity, query.after.or(last)).await?;
    let session = own.gateway.open(identity, DeviceProtocol::Stream, WINDOW_MAX_COUNT);
    // Read after the session is open, because a change of keys ends open sessions.
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
    // Browsers and proxies forward a response with its first bytes: until then a device does not know that it is connected.
    let opening = once(ready(Ok(Event::default().comment("open"))));
    Ok(Sse::new(opening.chain(unfold(stream, DeviceEvents::next))).keep_alive(heartbeat))
}

/// The messages of one device as events.
struct DeviceEvents {
    session: DeviceSession,
    /// The keys for which messages are sealed.
    keys: Option<PushKeys>,
    gateway: Gateway,
    confirming: Confirming,
    /// Messages to write, in reverse order; each is encoded when its turn comes.
    ready: Vec<Arc<Message>>,
    /// Messages that are known to be written when the next event is polled.
    written: Vec<MessageId>,
    /// Unconfirmed messages of the events so far.
    given: Vec<MessageId>,
    /// Its place among the long-lived requests, in the device's name.
    _permit: RequestPermit,
    /// Keeps the connection from counting as idle while the stream is silent.
    _at_work: Option<AtWork>,
}

impl DeviceEvents {
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        if self.ready.is_empty() {
            let written = std::mem::take(&mut self.written);
            // Only when more is polled: until then the last event may not be written yet.
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
        // A message that cannot be sealed is skipped and stays unconfirmed: it comes with the next connection.
        Some((Ok(event.unwrap_or_else(|| Event::default().comment("not sealed"))), self))
    }

    fn take(&mut self, messages: &[PendingMessage]) {
        let unconfirmed = self.session.unconfirmed_messages();
        self.given.retain(|given| unconfirmed.contains(given));
        self.ready.extend(messages.iter().rev().map(|one| Arc::clone(&one.message)));
    }

    /// Encodes one message as an event; `None` if it cannot be sealed.
    fn event(&mut self, message: &Message) -> Option<Event> {
        let view = message_json(message, self.gateway.clock().now(), self.keys.as_ref()).ok()?;
        self.given.push(message.id);
        self.written.push(message.id);
        let cursor = DeliveryCursor::new(&self.given).map(|cursor| cursor.to_string());
        Some(Event::default().event("message").id(cursor.unwrap_or_default()).data(view))
    }
}

/// The parameters of a poll.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PollQuery {
    /// Confirms the messages of the reply with this cursor.
    #[serde(default)]
    after: Option<DeliveryCursor>,
    #[serde(default)]
    wait_seconds: Option<u64>,
    #[serde(default)]
    max: Option<usize>,
}

/// The reply to a poll.
#[derive(Serialize)]
pub(super) struct PollView {
    messages: Vec<Box<RawValue>>,
    /// The value of `after` for the next poll.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<DeliveryCursor>,
    /// Number of messages deleted because too many were waiting.
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
            // Messages that cannot be sealed, or that would make the reply too long, are omitted and stay unconfirmed: they come with the
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

/// Messages received by a device.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReceiptRequest {
    messages: Vec<MessageId>,
}

/// The number of deliveries that were waiting for the confirmation.
#[derive(Serialize)]
pub(super) struct ReceiptView {
    confirmed: usize,
}

/// `POST /gateway/v1/receipts`: confirms received messages. The confirmation is on disk before the response.
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
