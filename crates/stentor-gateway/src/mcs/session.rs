//! One connection of a program, which serves all that it has registered.

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

/// Serves one connection of a device until either side ends it. `admitted` is cancelled when its program has a registration: anybody may
/// check in, and be a program of nobody's.
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

/// One registration that is served.
struct McsSession {
    channel: McsChannel,
    session: DeviceSession,
}

/// A delivery that was written and not acknowledged.
#[derive(Clone, Copy)]
struct McsFlight {
    stanza: u32,
    device: DeviceId,
    message: MessageId,
}

/// A connection whose device is known.
struct McsConnection<S> {
    gateway: Gateway,
    link: McsLink<S>,
    agent: McsAgent,
    signal: Arc<McsAgentSignal>,
    wake: Arc<Notify>,
    sessions: Vec<McsSession>,
    flights: VecDeque<McsFlight>,
    /// Messages of the device that are on disk, and of which it was not told.
    kept: Vec<String>,
    heartbeat: Duration,
    received_at: Instant,
    /// Set while the answer to a heartbeat is awaited.
    asked_at: Option<Instant>,
    /// When the registrations were read.
    loaded_at: Instant,
    /// Since when the program has no registration.
    lonely_since: Option<Instant>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> McsConnection<S> {
    /// Opens the sessions of a program that has logged in, and says so; gives the link back where it cannot.
    async fn open(gateway: Gateway, link: McsLink<S>, login: McsLogin) -> Result<Self, (McsLink<S>, McsEnd)> {
        let wake = Arc::new(Notify::new());
        // Before the registrations are read: one that changes meanwhile raises the flag, and they are read again.
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
        // Before the reply, and so before anything is given: what it got through its last connection would be given
        // once more.
        self.confirm_earlier(&login.received).await?;
        let reply = handshake::accepted(&self.gateway, login);
        self.link.put(McsStanza::LoginReply(reply));
        Ok(())
    }

    /// Ends the sessions, before the device hears the last words: what it does then is another connection's.
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
        // Before it waits, which may take minutes: a program with a registration has its place from now on.
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

    /// Notes whether the program has a registration; one that has none for long ends, and gives its place to others.
    fn note_loneliness(&mut self) -> Result<(), McsEnd> {
        if !self.sessions.is_empty() {
            self.lonely_since = None;
            return Ok(());
        }
        let since = *self.lonely_since.get_or_insert_with(Instant::now);
        if since.elapsed() < self.link.limits().lonely_max { Ok(()) } else { Err(McsEnd::Lonely) }
    }

    fn due_at(&self) -> Instant {
        let due = self.asked_at.map_or(self.received_at + self.heartbeat, |asked| {
            asked + self.link.limits().heartbeat_ack_timeout
        });
        self.lonely_since.map_or(due, |since| due.min(since + self.link.limits().lonely_max))
    }

    async fn wake_up(&mut self) -> Result<(), McsEnd> {
        self.note_loneliness()?;
        self.ask().await
    }

    /// Asks a silent device whether it is there.
    async fn ask(&mut self) -> Result<(), McsEnd> {
        if self.asked_at.is_some() {
            return Err(McsEnd::Silent);
        }
        self.link.put(McsStanza::HeartbeatPing(McsHeartbeat::default()));
        self.asked_at = Some(Instant::now());
        self.load_again().await;
        Ok(())
    }

    /// Writes all that there is for the device.
    async fn give(&mut self) -> Result<(), McsEnd> {
        // Before anything is given: the device reads the other connection.
        if self.signal.is_replaced() {
            return Err(McsEnd::TakenOver);
        }
        if self.signal.take_changed() {
            self.load_or_log().await;
        }
        while self.give_some().await? {}
        // While something of the device is unread, more may be acknowledged by the same stanza.
        if !self.kept.is_empty() && (self.link.has_read_all() || self.kept.len() >= UPSTREAM_ACK_MAX_COUNT) {
            let kept = std::mem::take(&mut self.kept);
            self.link.put(McsStanza::Iq(McsIq::acknowledging(kept)));
        }
        self.link.flush().await
    }

    /// Lets each registration have its turn; returns whether there may be more.
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
            // One with another token may still connect, and is opened again; one that was removed is not.
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

    /// Takes what the device says.
    async fn hear(&mut self, stanza: McsStanza) -> Result<(), McsEnd> {
        // Whatever comes shows that the device is there.
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

    /// Confirms what the device has received by the numbers of our stanzas.
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

    /// Confirms what the device says to have received through an earlier connection. An id without a device is from a time when the
    /// program had one registration; with several, nobody knows whose it is, and the message is given again.
    // Exclusive, though it changes nothing here: a shared borrow across a wait would ask the stream to be shared between threads.
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

    /// Keeps a message of the device; it is acknowledged when it is on disk. Where the store cannot keep it now the connection ends, so
    /// that the device sends it again.
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

    /// Answers the device that its message was not taken, and that it need not send it again.
    fn refuse(&mut self, channel: &McsChannelName, stanza: &McsData, word: &str) {
        self.note_kept(stanza);
        self.put_data(send_error_stanza(channel, key_of(stanza), word));
    }

    /// Reads the registrations with the heartbeats, but not with each of one who sends many: another process may have taken a
    /// registration of this program.
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

    /// Reads what the program has registered: opens sessions for what is new, and ends those of what is gone.
    async fn load(&mut self) -> Result<(), StoreError> {
        // Noted first: a store that fails is not asked again with each heartbeat.
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
