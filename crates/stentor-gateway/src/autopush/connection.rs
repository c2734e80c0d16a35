//! One connection: reads and writes frames, and delivers messages to the agent's devices.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Sink, SinkExt, Stream, StreamExt};
use stentor_core::id::{AppId, MessageId};
use stentor_core::message::Message;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::StoreError;
use stentor_core::time::Timestamp;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::apps::OpenApps;
use super::handshake::{self, AgentChannel};
use super::session::{AutopushClose, AutopushState, AutopushStep};
use super::{AutopushResult, AutopushTimeouts, WINDOW_COUNT, frames};
use crate::delivery::PendingMessage;
use crate::gateway::Gateway;
use crate::session::{DeviceSession, SessionEvent};
use crate::session_state::Closed;
use crate::stats::DeviceProtocol;
use crate::web_push::{PushCapability, PushRates};
use stentor_wire::web_push::VapidKey;

/// A WebSocket frame, as far as the protocol distinguishes frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutopushFrame {
    /// A text frame.
    Text(String),
    /// A binary frame. The protocol does not use it and closes the connection with an error.
    Binary,
    /// A ping frame.
    Ping,
    /// A pong frame.
    Pong,
    /// A close frame with its code.
    Close(u16),
}

/// The services and settings for serving a connection.
#[derive(Clone)]
pub struct AutopushServing {
    /// The gateway.
    pub gateway: Gateway,
    /// The apps with open registration.
    pub apps: Arc<OpenApps>,
    /// The rate limit of registrations per app.
    pub registrations: Arc<PushRates<AppId>>,
    /// The part of a subscription's URL before its capability, with a trailing slash.
    pub endpoint_base: String,
    /// The app named in the connection's URL.
    pub app: Option<AppId>,
    /// The timeouts of the connection.
    pub timeouts: AutopushTimeouts,
}

impl AutopushServing {
    /// Determines the app of a registration. Fails if its registration is not open.
    async fn permitted(&self, key: Option<&VapidKey>) -> Result<AppId, (u16, String)> {
        let (apps, now) = (&self.apps, self.gateway.clock().now());
        let by_key = match (self.app, key) {
            // The key decides only if the URL names no app.
            (None, Some(key)) => apps.app_of(key, now).await.map_err(|error| unavailable(&error))?,
            _ => None,
        };
        let app = self.app.or(by_key);
        let app = app.ok_or_else(|| (403, "neither the address nor the key names an app".to_owned()))?;
        if !apps.is_open(app).await.map_err(|error| unavailable(&error))? {
            return Err((
                403,
                "the app does not let devices register by themselves: open_registration".to_owned(),
            ));
        }
        // Checked last, so that a registration rejected for another reason does not count.
        let taken = self.registrations.take(&app, now);
        taken.map_err(|seconds| (429, format!("too many registrations: come back in {seconds} s")))?;
        Ok(app)
    }
}

/// A channel with a connected device.
struct OpenChannel {
    channel: AgentChannel,
    session: DeviceSession,
    opened_at: Timestamp,
}

impl OpenChannel {
    /// Separates the messages that were only for a device connected at their time (RFC 8030, 5.2), which this one was not.
    fn without_missed(&self, messages: Vec<PendingMessage>) -> (Vec<MessageId>, Vec<PendingMessage>) {
        let is_missed =
            |message: &Message| message.spec.ttl.as_seconds() == 0 && message.due_at < self.opened_at;
        let (missed, others): (Vec<_>, Vec<_>) =
            messages.into_iter().partition(|one| is_missed(&one.message));
        (missed.iter().map(|one| one.message.id).collect(), others)
    }

    /// Records a device's result for a message. A dropped message does not count as delivered and is not sent again.
    fn end(&self, message: MessageId, result: AutopushResult) {
        match result {
            AutopushResult::Delivered => self.session.confirm(&[message]),
            AutopushResult::NotDecrypted => self.session.give_up(&[message], Reason::InvalidPayload),
            AutopushResult::NotDelivered => self.session.give_up(&[message], Reason::Unavailable),
        }
    }
}

/// A connection being served.
struct AutopushConnection<'a, S> {
    serving: &'a AutopushServing,
    socket: S,
    state: AutopushState,
    agent: String,
    channels: Vec<OpenChannel>,
    wake: Arc<Notify>,
    admitted: CancellationToken,
}

/// Serves one connection until it ends. Unconfirmed messages wait in the ledger. `admitted` is cancelled once the agent has a channel,
/// because any client can send `hello`, which proves nothing.
pub async fn serve<S, E>(
    serving: AutopushServing,
    socket: S,
    stopping: CancellationToken,
    admitted: CancellationToken,
) where
    S: Stream<Item = Result<AutopushFrame, E>> + Sink<AutopushFrame> + Unpin + Send,
{
    let mut connection = AutopushConnection {
        serving: &serving,
        socket,
        state: AutopushState::default(),
        agent: String::new(),
        channels: Vec::new(),
        wake: Arc::new(Notify::new()),
        admitted,
    };
    if let Err(Some(close)) = connection.run(&stopping).await {
        // Sessions end first, so that they receive nothing more while the frame is written.
        connection.channels.clear();
        let _gone_is_as_good = connection.write(AutopushFrame::Close(close.code())).await;
    }
}

/// The reason for the end of a connection; `None` if the peer is gone.
type AutopushEnd = Option<AutopushClose>;

impl<S, E> AutopushConnection<'_, S>
where
    S: Stream<Item = Result<AutopushFrame, E>> + Sink<AutopushFrame> + Unpin + Send,
{
    async fn run(&mut self, stopping: &CancellationToken) -> Result<(), AutopushEnd> {
        let timeouts = self.serving.timeouts;
        let (mut alarm, mut awaits_pong) = (pin!(sleep_until(Instant::now() + timeouts.hello)), false);
        let mut lonely_since = None;
        loop {
            // A wake-up only indicates possible work: each iteration checks all channels.
            self.deliver().await?;
            lonely_since = self.channels.is_empty().then(|| lonely_since.unwrap_or_else(Instant::now));
            let wake = Arc::clone(&self.wake);
            tokio::select! {
                frame = self.socket.next() => {
                    let frame = frame.ok_or(None)?.map_err(|_| None)?;
                    self.take(frame).await?;
                    if self.state.has_greeted() {
                        // Any frame shows that the device is alive.
                        awaits_pong = false;
                        alarm.as_mut().reset(Instant::now() + timeouts.ping_interval);
                    }
                }
                () = wake.notified() => {}
                () = &mut alarm => {
                    if awaits_pong || !self.state.has_greeted() {
                        return Err(Some(AutopushClose::Normal));
                    }
                    self.write(AutopushFrame::Ping).await?;
                    awaits_pong = true;
                    alarm.as_mut().reset(Instant::now() + timeouts.pong);
                }
                () = at(lonely_since.map(|since| since + timeouts.subscription)) => {
                    return Err(Some(AutopushClose::Normal));
                }
                () = stopping.cancelled() => return Err(Some(AutopushClose::GoingAway)),
            }
        }
    }

    async fn take(&mut self, frame: AutopushFrame) -> Result<(), AutopushEnd> {
        let text = match frame {
            AutopushFrame::Text(text) => text,
            AutopushFrame::Binary => return Err(Some(AutopushClose::Protocol)),
            // The WebSocket library answers pings.
            AutopushFrame::Ping | AutopushFrame::Pong => return Ok(()),
            AutopushFrame::Close(_) => return Err(None),
        };
        for step in self.state.take(&text, self.serving.gateway.clock().now()) {
            self.follow(step).await?;
        }
        Ok(())
    }

    async fn follow(&mut self, step: AutopushStep) -> Result<(), AutopushEnd> {
        match step {
            AutopushStep::Write(text) => self.write(AutopushFrame::Text(text)).await,
            AutopushStep::Identify(agent) => self.identify(agent).await,
            AutopushStep::Register { channel, key } => {
                let answer = match self.register(&channel, key.as_ref()).await {
                    Ok(endpoint) => frames::registered(&channel, &endpoint),
                    Err((status, why)) => frames::not_registered(&channel, status, &why),
                };
                self.write(AutopushFrame::Text(answer)).await
            }
            AutopushStep::Unregister(channel) => {
                let status = if self.unregister(&channel).await.is_ok() { 200 } else { 503 };
                self.write(AutopushFrame::Text(frames::unregistered(&channel, status))).await
            }
            AutopushStep::End { channel, message, result } => {
                let of_channel = self.channels.iter().filter(|open| open.channel.name == channel);
                of_channel.for_each(|open| open.end(message, result));
                Ok(())
            }
            AutopushStep::Count(failure) => {
                self.serving.gateway.counts().note_autopush_failure(failure);
                Ok(())
            }
            AutopushStep::Close(close) => Err(Some(close)),
        }
    }

    /// Answers `hello`. An agent without channels here gets a new name, from which it learns that its subscriptions are gone.
    async fn identify(&mut self, named: Option<String>) -> Result<(), AutopushEnd> {
        let mut known = Vec::new();
        if let Some(agent) = &named {
            let found = handshake::channels_of(&self.serving.gateway, agent).await;
            known = found.map_err(|_| Some(AutopushClose::Failed))?;
        }
        self.agent = named.filter(|_| !known.is_empty()).unwrap_or_else(handshake::new_agent);
        // The greeting precedes all deliveries: sessions are opened after it.
        self.write(AutopushFrame::Text(frames::hello(&self.agent))).await?;
        known.into_iter().for_each(|channel| self.open(channel));
        Ok(())
    }

    fn open(&mut self, channel: AgentChannel) {
        let (identity, wake) = (channel.identity, Arc::clone(&self.wake));
        let protocol = DeviceProtocol::Autopush;
        let session = self.serving.gateway.open_woken_by(identity, protocol, WINDOW_COUNT, wake);
        let opened_at = self.serving.gateway.clock().now();
        self.channels.push(OpenChannel { channel, session, opened_at });
        self.admitted.cancel();
    }

    /// Creates a subscription; returns its URL. A subscription that exists with the same key is returned again.
    async fn register(&mut self, name: &str, key: Option<&VapidKey>) -> Result<String, (u16, String)> {
        let app = self.serving.permitted(key).await?;
        let is_this = |open: &&OpenChannel| open.channel.name == name;
        if let Some(open) = self.channels.iter().find(is_this) {
            if open.channel.is_of(app, key) {
                return Ok(self.endpoint(&open.channel, key));
            }
            // With another key or app the name denotes another subscription, and the former one ends.
            self.unregister(name).await.map_err(|error| unavailable(&error))?;
        }
        let added = handshake::add_channel(&self.serving.gateway, &self.agent, app, name, key).await;
        let channel = added.map_err(|error| unavailable(&error))?;
        let endpoint = self.endpoint(&channel, key);
        self.open(channel);
        Ok(endpoint)
    }

    fn endpoint(&self, channel: &AgentChannel, key: Option<&VapidKey>) -> String {
        let capability = PushCapability::subscription(channel.identity, key);
        format!("{}{}", self.serving.endpoint_base, capability.text(self.serving.gateway.key()))
    }

    /// Ends a subscription. An unknown one counts as ended.
    async fn unregister(&mut self, name: &str) -> Result<(), StoreError> {
        let Some(place) = self.channels.iter().position(|open| open.channel.name == name) else {
            return Ok(());
        };
        let channel = self.channels[place].channel.clone();
        // Removed here only after the store: after a failure the device gets a 503 and keeps the subscription.
        handshake::end_channel(&self.serving.gateway, &self.agent, &channel).await?;
        self.channels.remove(place);
        Ok(())
    }

    /// Writes the pending deliveries of the agent's devices.
    async fn deliver(&mut self) -> Result<(), AutopushEnd> {
        let mut place = 0;
        while let Some(open) = self.channels.get(place) {
            match open.session.try_next().await {
                Ok(None) => place += 1,
                Ok(Some(SessionEvent::Messages(messages))) => {
                    let name = open.channel.name.clone();
                    let (missed, messages) = open.without_missed(messages);
                    if !missed.is_empty() {
                        open.session.give_up(&missed, Reason::Unavailable);
                    }
                    for one in messages {
                        let text = frames::notification(&name, &one.message);
                        self.write(AutopushFrame::Text(text)).await?;
                    }
                }
                Ok(Some(SessionEvent::Deleted(_))) => return Err(self.reset().await),
                Err(Closed::TakenOver | Closed::Silent) => return Err(Some(AutopushClose::Normal)),
                Err(Closed::Stopping | Closed::Crowded) => return Err(Some(AutopushClose::GoingAway)),
                Err(Closed::CutOff) => self.forget(place).await?,
            }
        }
        Ok(())
    }

    /// Ends all subscriptions of an agent whose messages were dropped because too many were waiting. When it reconnects it gets a new name,
    /// so that it subscribes again and fetches missed content from its senders.
    async fn reset(&mut self) -> AutopushEnd {
        for open in std::mem::take(&mut self.channels) {
            let ended = handshake::end_channel(&self.serving.gateway, &self.agent, &open.channel).await;
            if let Err(error) = ended {
                tracing::warn!(%error, "a subscription could not be ended");
            }
        }
        Some(AutopushClose::Normal)
    }

    /// Removes the channel of a deleted device.
    async fn forget(&mut self, place: usize) -> Result<(), AutopushEnd> {
        let open = self.channels.remove(place);
        let ended = handshake::end_channel(&self.serving.gateway, &self.agent, &open.channel).await;
        ended.map_err(|_| Some(AutopushClose::Failed))
    }

    async fn write(&mut self, frame: AutopushFrame) -> Result<(), AutopushEnd> {
        let wait: Duration = self.serving.timeouts.write;
        match timeout(wait, self.socket.send(frame)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(None),
        }
    }
}

/// Waits until an instant; for ever without one.
async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => pending().await,
    }
}

fn unavailable(error: &StoreError) -> (u16, String) {
    match error {
        StoreError::LimitReached(why) => (409, why.clone()),
        _ => (503, "nothing was kept: try again later".to_owned()),
    }
}
