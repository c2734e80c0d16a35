//! One connection of a program, which serves all its registrations.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use stentor_core::id::{DeviceId, MessageId};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::StoreError;
use stentor_wire::mcs::{McsData, McsHeartbeat, McsIq, McsStanza};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::agent::McsAgent;
use super::agent_registry::McsAgentSignal;
use super::channel::{McsChannel, McsChannelName};
use super::data_stanza::{deleted_stanza, message_stanza, send_error_stanza};
use super::handshake::{self, McsLogin};
use super::limits::{FLUSH_BYTES, McsLimits, UPSTREAM_ACK_MAX_COUNT};
use super::link::{McsEnd, McsLink};
use super::persistent_id::McsPersistentId;
use super::upstream::{acknowledged_by, channel_of, draft, key_of, refusal_word};
use crate::delivery::PendingMessage;
use crate::gateway::Gateway;
use crate::session::{DeviceSession, SessionEvent};
use crate::session_state::Closed;
use crate::stats::DeviceProtocol;
use crate::upstream::UpstreamError;

/// Serves one connection of a device until either side ends it. `admitted` is cancelled once its program has a registration, because any
/// client can check in.
pub async fn serve<S>(
    gateway: Gateway,
    stream: S,
    stopping: CancellationToken,
    admitted: CancellationToken,
    limits: McsLimits,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut link = McsLink::new(stream, limits);
    let end = match log_in(&gateway, &mut link, &stopping).await {
        Ok(login) => match McsConnection::open(gateway, link, login).await {
            Ok(mut connection) => {
                let end = connection.run(&stopping, &admitted).await;
                connection.close();
                link = connection.link;
                end
            }
            Err((back, end)) => {
                link = back;
                end
            }
        },
        Err(end) => end,
    };
    tracing::debug!(%end, "an MCS connection ends");
    link.finish(&end).await;
}

async fn log_in<S: AsyncRead + AsyncWrite + Unpin>(
    gateway: &Gateway,
    link: &mut McsLink<S>,
    stopping: &CancellationToken,
) -> Result<McsLogin, McsEnd> {
    let first = tokio::select! {
        first = timeout(link.limits().login_timeout, link.next()) => first.map_err(|_| McsEnd::Silent)??,
        () = stopping.cancelled() => return Err(McsEnd::Stopping),
    };
    let McsStanza::LoginRequest(request) = first else {
        return Err(McsEnd::Malformed("the first stanza must be a login".to_owned()));
    };
    match handshake::check(gateway, *request, link.limits()) {
        Ok(login) => Ok(login),
        Err(refusal) => {
            link.put(McsStanza::LoginReply(*refusal));
            link.flush().await?;
            Err(McsEnd::Refused)
        }
    }
}

/// One served registration.
struct McsSession {
    channel: McsChannel,
    session: DeviceSession,
}

/// A written and unacknowledged delivery.
#[derive(Clone, Copy)]
struct McsFlight {
    stanza: u32,
    device: DeviceId,
    message: MessageId,
}

/// A connection after its login.
struct McsConnection<S> {
    gateway: Gateway,
    link: McsLink<S>,
    agent: McsAgent,
    signal: Arc<McsAgentSignal>,
    wake: Arc<Notify>,
    sessions: Vec<McsSession>,
    flights: VecDeque<McsFlight>,
    /// Messages of the device that are on disk and not yet acknowledged.
    kept: Vec<String>,
    heartbeat: Duration,
    received_at: Instant,
    /// Time of an unanswered heartbeat.
    asked_at: Option<Instant>,
    /// Time at which the registrations were read.
    loaded_at: Instant,
    /// Start of the time without a registration.
    lonely_since: Option<Instant>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> McsConnection<S> {
    /// Opens the sessions of a program after its login, and accepts the login; returns the link on failure.
    async fn open(gateway: Gateway, link: McsLink<S>, login: McsLogin) -> Result<Self, (McsLink<S>, McsEnd)> {
        let wake = Arc::new(Notify::new());
        // Added before the registrations are read: a concurrent change sets the flag, and they are read again.
        let signal = gateway.mcs_agents().add(login.agent, Arc::clone(&wake));
        let mut connection = Self {
            gateway,
            link,
            agent: login.agent,
            signal,
            wake,
            sessions: Vec::new(),
            flights: VecDeque::new(),
            kept: Vec::new(),
            heartbeat: login.heartbeat,
            received_at: Instant::now(),
            asked_at: None,
            loaded_at: Instant::now(),
            lonely_since: Some(Instant::now()),
        };
        match connection.begin(&login).await {
            Ok(()) => Ok(connection),
            Err(end) => {
                connection.close();
                Err((connection.link, end))
            }
        }
    }

    async fn begin(&mut self, login: &McsLogin) -> Result<(), McsEnd> {
        if let Err(error) = self.load().await {
            self.link.put(McsStanza::LoginReply(handshake::refusal(
                login.id.clone(),
                500,
                "come again later",
            )));
            return Err(error.into());
        }
        // Before the reply, and so before any delivery: messages received over the last connection would be delivered again.
        self.confirm_earlier(&login.received).await?;
        let reply = handshake::accepted(&self.gateway, login);
        self.link.put(McsStanza::LoginReply(reply));
        Ok(())
    }

    /// Ends the sessions before the final stanzas, after which the device may open another connection.
    fn close(&mut self) {
        self.sessions.clear();
        self.gateway.mcs_agents().remove(self.agent, &self.signal);
    }

    async fn run(&mut self, stopping: &CancellationToken, admitted: &CancellationToken) -> McsEnd {
        loop {
            if let Err(end) = self.turn(stopping, admitted).await {
                return end;
            }
        }
    }

    async fn turn(
        &mut self,
        stopping: &CancellationToken,
        admitted: &CancellationToken,
    ) -> Result<(), McsEnd> {
        self.give().await?;
        self.note_loneliness()?;
        // Before the wait, which may take minutes: a program with a registration is admitted from now on.
        if self.lonely_since.is_none() {
            admitted.cancel();
        }
        let due = self.due_at();
        tokio::select! {
            stanza = self.link.next() => {
                let stanza = stanza?;
                self.hear(stanza).await
            }
            () = self.wake.notified() => Ok(()),
            () = sleep_until(due) => self.wake_up().await,
            () = stopping.cancelled() => Err(McsEnd::Stopping),
        }
    }

    /// Records if the program has a registration. A program without one for too long is disconnected, which frees its place.
    fn note_loneliness(&mut self) -> Result<(), McsEnd> {
        if !self.sessions.is_empty() {
            self.lonely_since = None;
            return Ok(());
        }
        let since = *self.lonely_since.get_or_insert_with(Instant::now);
        if since.elapsed() < self.link.limits().lonely_max { Ok(()) } else { Err(McsEnd::Lonely) }
    }

    fn due_at(&self) -> Instant {
        let due = self.asked_at.map_or(self.received_at + self.heartbeat, |asked_at| {
            asked_at + self.link.limits().heartbeat_ack_timeout
        });
        self.lonely_since.map_or(due, |since| due.min(since + self.link.limits().lonely_max))
    }

    async fn wake_up(&mut self) -> Result<(), McsEnd> {
        self.note_loneliness()?;
        self.ask().await
    }

    /// Sends a heartbeat to a silent device.
    async fn ask(&mut self) -> Result<(), McsEnd> {
        if self.asked_at.is_some() {
            return Err(McsEnd::Silent);
        }
        self.link.put(McsStanza::HeartbeatPing(McsHeartbeat::default()));
        self.asked_at = Some(Instant::now());
        self.load_again().await;
        Ok(())
    }

    /// Writes everything that is pending for the device.
    async fn give(&mut self) -> Result<(), McsEnd> {
        // Checked before any delivery: the device reads the other connection.
        if self.signal.is_replaced() {
            return Err(McsEnd::TakenOver);
        }
        if self.signal.take_changed() {
            self.load_or_log().await;
        }
        while self.give_some().await? {}
        // While input of the device is unread, the same stanza may acknowledge more.
        if !self.kept.is_empty() && (self.link.has_read_all() || self.kept.len() >= UPSTREAM_ACK_MAX_COUNT) {
            let pending = std::mem::take(&mut self.kept);
            self.link.put(McsStanza::Iq(McsIq::acknowledging(pending)));
        }
        self.link.flush().await
    }

    /// Serves each registration once; returns true if there may be more.
    async fn give_some(&mut self) -> Result<bool, McsEnd> {
        let (mut has_more, mut cut) = (false, Vec::new());
        for index in 0..self.sessions.len() {
            match self.sessions[index].session.try_next().await {
                Ok(None) => continue,
                Ok(Some(SessionEvent::Messages(messages))) => self.put_messages(index, &messages),
                Ok(Some(SessionEvent::Deleted(count))) => {
                    let stanza = deleted_stanza(&self.sessions[index].channel.name, count);
                    self.put_data(stanza);
                }
                Err(Closed::TakenOver) => return Err(McsEnd::TakenOver),
                Err(Closed::Stopping) => return Err(McsEnd::Stopping),
                Err(Closed::Silent) => return Err(McsEnd::Silent),
                Err(Closed::Crowded) => return Err(McsEnd::Crowded),
                Err(Closed::CutOff) => cut.push(self.sessions[index].channel.identity.device),
            }
            has_more = true;
            if self.link.waiting_bytes() >= FLUSH_BYTES {
                self.link.flush().await?;
            }
        }
        if !cut.is_empty() {
            // A device with a new token may still connect, and is opened again; a removed one is not.
            self.sessions.retain(|one| !cut.contains(&one.channel.identity.device));
            self.load_or_log().await;
        }
        Ok(has_more)
    }

    fn put_messages(&mut self, index: usize, messages: &[PendingMessage]) {
        let now = self.gateway.clock().now();
        let has_several = self.sessions.len() > 1;
        let device = self.sessions[index].channel.identity.device;
        for one in messages {
            let message = one.message.id;
            let id = McsPersistentId { message, device: has_several.then_some(device) };
            let McsSession { channel, session } = &self.sessions[index];
            let Some(stanza) = message_stanza(&channel.name, &one.message, id, now) else {
                session.give_up(&[message], Reason::InvalidPayload);
                continue;
            };
            let stanza = self.put_data(stanza);
            self.flights.push_back(McsFlight { stanza, device, message });
        }
    }

    fn put_data(&mut self, stanza: McsData) -> u32 {
        self.link.put(McsStanza::Data(Box::new(stanza)))
    }

    /// Processes a stanza of the device.
    async fn hear(&mut self, stanza: McsStanza) -> Result<(), McsEnd> {
        // Any stanza shows that the device is alive.
        (self.received_at, self.asked_at) = (Instant::now(), None);
        if let Some(last) = stanza.last_received() {
            self.confirm_up_to(last);
        }
        match stanza {
            McsStanza::HeartbeatPing(_) => {
                self.link.put(McsStanza::HeartbeatAck(McsHeartbeat::default()));
                self.load_again().await;
            }
            McsStanza::Iq(iq) => {
                let ids = iq.acknowledged().map_err(|error| McsEnd::Malformed(error.to_string()))?;
                ids.iter().for_each(|id| self.confirm(id));
            }
            McsStanza::Data(data) => self.keep(&data).await?,
            McsStanza::Close => return Err(McsEnd::Gone),
            McsStanza::LoginRequest(_) => return Err(McsEnd::Malformed("a second login".to_owned())),
            McsStanza::HeartbeatAck(_)
            | McsStanza::LoginReply(_)
            | McsStanza::StreamError(_)
            | McsStanza::Other(_) => {}
        }
        Ok(())
    }

    /// Confirms the deliveries in the stanzas that the device reports as received, by their numbers.
    fn confirm_up_to(&mut self, last: u32) {
        let mut confirmed: BTreeMap<DeviceId, Vec<MessageId>> = BTreeMap::new();
        let count = self.flights.partition_point(|flight| flight.stanza <= last);
        for flight in self.flights.drain(..count) {
            confirmed.entry(flight.device).or_default().push(flight.message);
        }
        for (device, messages) in confirmed {
            self.confirm_of(device, &messages);
        }
    }

    /// Confirms one delivery by its persistent id.
    fn confirm(&mut self, id: &str) {
        let Some(id) = McsPersistentId::parse(id) else { return };
        let is_it = |flight: &McsFlight| {
            flight.message == id.message && id.device.is_none_or(|device| device == flight.device)
        };
        let found = self.flights.iter().position(is_it).and_then(|index| self.flights.remove(index));
        if let Some(flight) = found {
            self.confirm_of(flight.device, &[flight.message]);
        }
    }

    fn confirm_of(&self, device: DeviceId, messages: &[MessageId]) {
        let mut sessions = self.sessions.iter();
        if let Some(of_device) = sessions.find(|one| one.channel.identity.device == device) {
            of_device.session.confirm(messages);
        }
    }

    /// Confirms the deliveries that the device received over an earlier connection. An id without a device was assigned while the program
    /// had one registration. If it now has several, the device of that id is unknown, and the message is delivered again.
    // `&mut` although it changes nothing: a shared borrow across an await would require the stream to be `Sync`.
    async fn confirm_earlier(&mut self, received: &[String]) -> Result<(), StoreError> {
        let received: Vec<McsPersistentId> =
            received.iter().filter_map(|id| McsPersistentId::parse(id)).collect();
        let is_alone = self.sessions.len() == 1;
        for one in &self.sessions {
            let device = one.channel.identity.device;
            let is_its = |id: &&McsPersistentId| id.device.map_or(is_alone, |known| known == device);
            let messages: Vec<MessageId> = received.iter().filter(is_its).map(|id| id.message).collect();
            if !messages.is_empty() {
                one.session.confirm_earlier(&messages).await?;
            }
        }
        Ok(())
    }

    /// Stores a message of the device, and acknowledges it once it is on disk. If the store fails, the connection ends, so that the device
    /// sends the message again.
    async fn keep(&mut self, stanza: &McsData) -> Result<(), McsEnd> {
        let channels = self.sessions.iter().map(|one| &one.channel);
        let Some(channel) = channel_of(stanza, channels).cloned() else {
            let (category, sender) = (stanza.category.clone(), stanza.to.clone().unwrap_or_default());
            let nobody = McsChannelName { category, subtype: None, sender, keys: None };
            self.refuse(&nobody, stanza, "unknown_sender");
            return Ok(());
        };
        match self.gateway.keep_upstream(channel.identity, draft(stanza)).await {
            Ok(_) => self.note_kept(stanza),
            Err(error) => match (refusal_word(&error), error) {
                (Some(word), _) => self.refuse(&channel.name, stanza, word),
                (None, UpstreamError::Store(error)) => return Err(error.into()),
                (None, UpstreamError::Invalid(_)) => {}
            },
        }
        Ok(())
    }

    fn note_kept(&mut self, stanza: &McsData) {
        let id = acknowledged_by(stanza);
        if !id.is_empty() {
            self.kept.push(id.to_owned());
        }
    }

    /// Rejects a message of the device permanently, so that the device does not send it again.
    fn refuse(&mut self, channel: &McsChannelName, stanza: &McsData, word: &str) {
        self.note_kept(stanza);
        self.put_data(send_error_stanza(channel, key_of(stanza), word));
    }

    /// Reads the registrations on heartbeats, at a limited rate: another process may have added a registration of this program.
    async fn load_again(&mut self) {
        if self.loaded_at.elapsed() >= self.link.limits().heartbeat_min {
            self.load_or_log().await;
        }
    }

    async fn load_or_log(&mut self) {
        if let Err(error) = self.load().await {
            tracing::warn!(%error, agent = %self.agent, "the registrations of a program could not be read");
        }
    }

    /// Reads the program's registrations. Opens sessions for new ones, and ends those of removed ones.
    async fn load(&mut self) -> Result<(), StoreError> {
        // Set first, so that a failing store is not read again on each heartbeat.
        self.loaded_at = Instant::now();
        let channels = self.gateway.mcs_channels(self.agent).await?;
        self.sessions.retain(|one| channels.contains(&one.channel));
        for channel in channels {
            if self.sessions.iter().any(|one| one.channel == channel) {
                continue;
            }
            let (wake, window) = (Arc::clone(&self.wake), self.link.limits().window_max_count);
            let session = self.gateway.open_woken_by(channel.identity, DeviceProtocol::Mcs, window, wake);
            self.sessions.push(McsSession { channel, session });
        }
        Ok(())
    }
}
