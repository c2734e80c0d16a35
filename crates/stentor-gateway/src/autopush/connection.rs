//! One connection: frames in, frames out, and what waits for the agent's devices.

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
use crate::web_push::{PushCapability, PushRates, VapidKey};

/// A frame of a WebSocket, as far as this protocol knows frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutopushFrame {
    /// A text.
    Text(String),
    /// A frame that the protocol does not use; whoever sends it is told so.
    Binary,
    /// Asks whether the other side is there.
    Ping,
    /// The answer to a ping.
    Pong,
    /// Ends the connection, with the code.
    Close(u16),
}

/// What a connection needs to be served.
#[derive(Clone)]
pub struct AutopushServing {
    /// The gateway.
    pub gateway: Gateway,
    /// Which apps are open.
    pub apps: Arc<OpenApps>,
    /// How often devices may be registered, for each app.
    pub registrations: Arc<PushRates<AppId>>,
    /// What stands before a capability in the URL of a subscription, with a slash at its end.
    pub endpoint_base: String,
    /// The app that the connection's address names.
    pub app: Option<AppId>,
    /// How long is waited.
    pub timeouts: AutopushTimeouts,
}

impl AutopushServing {
    /// Finds the app to register at, and whether anybody may.
    async fn permitted(&self, key: Option<&VapidKey>) -> Result<AppId, (u16, String)> {
        let (apps, now) = (&self.apps, self.gateway.clock().now());
        let by_key = match (self.app, key) {
            // Only an address that names no app leaves it to the key.
            (None, Some(key)) => apps.app_of(key, now).await.map_err(|error| unavailable(&error))?,
            _ => None,
        };
        let app = self.app.or(by_key);
        let app = app.ok_or_else(|| (403, "neither the address nor the key names an app".to_owned()))?;
        if !apps.is_open(app).await.map_err(|error| unavailable(&error))? {
            return Err((403, "the app lets nobody register by itself: open_registration".to_owned()));
        }
        // Taken last: who is refused for another reason uses nothing up.
        let taken = self.registrations.take(&app, now);
        taken.map_err(|seconds| (429, format!("too many registrations: come back in {seconds} s")))?;
        Ok(app)
    }
}

/// A channel whose device is connected.
struct OpenChannel {
    channel: AgentChannel,
    session: DeviceSession,
    opened_at: Timestamp,
}

impl OpenChannel {
    /// Takes out what was only for a device that was connected when it came (RFC 8030, 5.2), and this one was not.
    fn without_missed(&self, messages: Vec<PendingMessage>) -> (Vec<MessageId>, Vec<PendingMessage>) {
        let is_missed =
            |message: &Message| message.spec.ttl.as_seconds() == 0 && message.due_at < self.opened_at;
        let (missed, others): (Vec<_>, Vec<_>) =
            messages.into_iter().partition(|one| is_missed(&one.message));
        (missed.iter().map(|one| one.message.id).collect(), others)
    }

    /// Notes what the device did with a message. One that it dropped is not delivered, and comes no more.
    fn end(&self, message: MessageId, result: AutopushResult) {
        match result {
            AutopushResult::Delivered => self.session.confirm(&[message]),
            AutopushResult::NotDecrypted => self.session.give_up(&[message], Reason::InvalidPayload),
            AutopushResult::NotDelivered => self.session.give_up(&[message], Reason::Unavailable),
        }
    }
}

/// A connection while it is served.
struct AutopushConnection<'a, S> {
    serving: &'a AutopushServing,
    socket: S,
    state: AutopushState,
    agent: String,
    channels: Vec<OpenChannel>,
    wake: Arc<Notify>,
    admitted: CancellationToken,
}

/// Serves one connection until it ends; what was not confirmed waits in the ledger. `admitted` is cancelled when the agent has a
/// channel: `hello` proves nothing, and anybody may say it.
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
        // Sessions end first: nothing more is given to them while the frame is written.
        connection.channels.clear();
        let _gone_is_as_good = connection.write(AutopushFrame::Close(close.code())).await;
    }
}

/// Why a connection ends; `None` when the other side is gone.
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
            // A wake-up says only that there may be something: each turn looks at all channels.
            self.deliver().await?;
            lonely_since = self.channels.is_empty().then(|| lonely_since.unwrap_or_else(Instant::now));
            let wake = Arc::clone(&self.wake);
            tokio::select! {
                frame = self.socket.next() => {
                    let frame = frame.ok_or(None)?.map_err(|_| None)?;
                    self.take(frame).await?;
                    if self.state.has_greeted() {
                        // Whatever comes shows that the device is there.
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
            // The library answers pings.
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

    /// Greets an agent. One that has no channels here gets another name, by which it knows that its subscriptions are gone.
    async fn identify(&mut self, named: Option<String>) -> Result<(), AutopushEnd> {
        let mut known = Vec::new();
        if let Some(agent) = &named {
            let found = handshake::channels_of(&self.serving.gateway, agent).await;
            known = found.map_err(|_| Some(AutopushClose::Failed))?;
        }
        self.agent = named.filter(|_| !known.is_empty()).unwrap_or_else(handshake::new_agent);
        // The greeting goes before any delivery: sessions are opened behind it.
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

    /// Makes a subscription; returns its URL. One that was made with the same key already is the same still.
    async fn register(&mut self, name: &str, key: Option<&VapidKey>) -> Result<String, (u16, String)> {
        let app = self.serving.permitted(key).await?;
        let is_this = |open: &&OpenChannel| open.channel.name == name;
        if let Some(open) = self.channels.iter().find(is_this) {
            if open.channel.is_of(app, key) {
                return Ok(self.endpoint(&open.channel, key));
            }
            // Under another key or app the name is another subscription, and the former one ends.
            self.unregister(name).await.map_err(|error| unavailable(&error))?;
        }
        let added = handshake::add_channel(&self.serving.gateway, &self.agent, (name, app, key)).await;
        let channel = added.map_err(|error| unavailable(&error))?;
        let endpoint = self.endpoint(&channel, key);
        self.open(channel);
        Ok(endpoint)
    }

    fn endpoint(&self, channel: &AgentChannel, key: Option<&VapidKey>) -> String {
        let capability = PushCapability::subscription(channel.identity, key);
        format!("{}{}", self.serving.endpoint_base, capability.text(self.serving.gateway.key()))
    }

    /// Ends a subscription; one that is unknown has ended already.
    async fn unregister(&mut self, name: &str) -> Result<(), StoreError> {
        let Some(place) = self.channels.iter().position(|open| open.channel.name == name) else {
            return Ok(());
        };
        let channel = self.channels[place].channel.clone();
        // It is removed here when it is in the store: after a failure the device is told 503 and goes on with it.
        handshake::end_channel(&self.serving.gateway, &self.agent, &channel).await?;
        self.channels.remove(place);
        Ok(())
    }

    /// Writes what there is for the agent's devices.
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

    /// Ends all subscriptions of an agent for which too much waited and was dropped. At its return it gets another name, so that
    /// it makes them anew and asks its senders for what it missed.
    async fn reset(&mut self) -> AutopushEnd {
        for open in std::mem::take(&mut self.channels) {
            let ended = handshake::end_channel(&self.serving.gateway, &self.agent, &open.channel).await;
            if let Err(error) = ended {
                tracing::warn!(%error, "a subscription could not be ended");
            }
        }
        Some(AutopushClose::Normal)
    }

    /// Forgets a channel whose device was removed.
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

/// Waits until an instant, for ever where there is none.
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
