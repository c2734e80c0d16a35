//! A logged-in device: its requests and its deliveries.

mod answers;
mod deliveries;

use std::future::poll_fn;
use std::task::{Context, Poll};

use mqtt_protocol_core::mqtt::result_code::DisconnectReasonCode;
use stentor_core::id::MessageId;
use tokio::io::{AsyncRead, AsyncWrite};

use super::fault::{MqttEnd, MqttFault};
use super::handshake::MqttLogin;
use super::limits::{MqttLimits, WRITE_BYTES};
use super::link::MqttLink;
use super::request::MqttRequest;
use super::session_record;
use super::subscriptions::MqttSubscriptions;
use super::will::WaitingWill;
use crate::device_logins::LoginKeys;
use crate::gateway::Gateway;
use crate::session::{DeviceSession, SessionEvent};
use crate::session_state::{Closed, SessionStep};
use crate::stats::DeviceProtocol;
use stentor_wire::web_push::PushKeys;

/// An event of a connection.
enum MqttEvent {
    /// Bytes from the device.
    Filled,
    /// A step of its session.
    Step(SessionStep),
}

/// State of a session that is needed after its connection.
#[derive(Default)]
struct MqttSessionEnd {
    /// Its record, if it outlives the connection.
    record: Option<Box<str>>,
    /// The will, which the server sends in the device's name.
    will: Option<Box<WaitingWill>>,
}

/// One connection from its login to its end.
pub(super) struct MqttSession<S> {
    gateway: Gateway,
    link: MqttLink<S>,
    filters_max_count: u16,
    /// `None` for devices without a persistent session or a will.
    session_end: Option<Box<MqttSessionEnd>>,
    window: u16,
    session: DeviceSession,
    subscriptions: MqttSubscriptions,
    /// The device's keys, for which its messages are sealed.
    keys: Option<Box<PushKeys>>,
    /// Number of devices cut off before they were read.
    keys_as_of: u32,
    /// Unacknowledged deliveries of QoS 1, by packet identifier.
    flight: Vec<(u16, MessageId)>,
    last_packet_id: u16,
}

impl<S: AsyncRead + AsyncWrite + Unpin> MqttSession<S> {
    pub(super) fn new(
        gateway: Gateway,
        link: MqttLink<S>,
        limits: &MqttLimits,
        login: MqttLogin,
    ) -> Box<Self> {
        let MqttLogin { identity, record, is_resumed, will, window, silence_max, .. } = login;
        // Nothing is delivered before the first filter, but the session must exist so that another one can take it over.
        let window_at_first = if is_resumed { window } else { 1 };
        let session = gateway.open(identity, DeviceProtocol::Mqtt, window_at_first.into());
        session.end_after_silence(silence_max);
        let session_end =
            (record.is_some() || will.is_some()).then(|| Box::new(MqttSessionEnd { record, will }));
        Box::new(Self {
            gateway,
            link,
            filters_max_count: limits.filters_max_count,
            session_end,
            window,
            session,
            subscriptions: MqttSubscriptions::new(is_resumed),
            keys: None,
            keys_as_of: 0,
            flight: Vec::new(),
            last_packet_id: 0,
        })
    }

    /// Returns true if its session outlives the connection.
    fn is_kept(&self) -> bool {
        self.session_end.as_ref().is_some_and(|end| end.record.is_some())
    }

    /// Takes the device's keys. A session without them ends.
    pub(super) async fn with_keys(mut self: Box<Self>, login_keys: LoginKeys) -> Option<Box<Self>> {
        match self.take_keys(login_keys).await {
            Ok(()) => Some(self),
            Err(end) => {
                self.finish(end).await;
                None
            }
        }
    }

    /// Serves the connection to its end.
    pub(super) async fn run(mut self: Box<Self>) {
        let end = loop {
            if let Err(end) = self.turn().await {
                break end;
            }
        };
        Box::pin(self.finish(end)).await;
    }

    /// Takes the keys of the device after its session is open, because a change of keys ends open sessions.
    async fn take_keys(&mut self, login_keys: LoginKeys) -> Result<(), MqttEnd> {
        // Before the keys are read: a change after it is noticed when the mailbox is reopened.
        self.keys_as_of = self.gateway.cut_offs();
        let unavailable = |_| MqttFault::new(DisconnectReasonCode::ServerBusy, "the store is unavailable");
        let keys = self.gateway.keys_of_session(self.session.identity(), login_keys).await;
        self.keys = keys.map_err(unavailable)?.map(Box::new);
        Ok(())
    }

    /// Processes all received requests, then waits for the next event.
    async fn turn(&mut self) -> Result<(), MqttEnd> {
        while let Some(request) = self.next_request()? {
            Box::pin(self.answer(request)).await?;
            if self.link.writer.waiting_bytes() >= WRITE_BYTES {
                self.link.flush().await?;
            }
        }
        self.link.flush().await?;
        // Only after the flush: otherwise the output would wait until the next event.
        match poll_fn(|context| self.poll_event(context)).await? {
            MqttEvent::Filled => Ok(()),
            MqttEvent::Step(SessionStep::Give(messages)) if self.subscriptions.is_open() => {
                let messages = self.session.counted(messages);
                // Boxed, as everything that a waiting connection does not hold.
                Box::pin(self.give(messages)).await
            }
            MqttEvent::Step(step) => Box::pin(self.follow(step)).await,
        }
    }

    /// Takes acknowledgements up to the next request of another kind, and confirms their deliveries at once.
    fn next_request(&mut self) -> Result<Option<MqttRequest>, MqttFault> {
        let mut acknowledged = Vec::new();
        let request = loop {
            match self.link.reader.next() {
                Ok(Some(MqttRequest::Puback(packet_id))) => acknowledged.push(packet_id),
                request => break request,
            }
        };
        if !acknowledged.is_empty() || matches!(request, Ok(Some(_))) {
            self.session.received();
        }
        let acknowledged: Vec<MessageId> =
            acknowledged.into_iter().filter_map(|packet_id| self.acknowledged(packet_id)).collect();
        if !acknowledged.is_empty() {
            self.session.confirm(&acknowledged);
        }
        request
    }

    /// Waits for the next event. Deliveries precede the device's requests; their window is limited, and then requests have their turn.
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Result<MqttEvent, MqttEnd>> {
        if let Poll::Ready(step) = self.session.poll_step(context) {
            return Poll::Ready(Ok(MqttEvent::Step(step)));
        }
        if let Poll::Ready(filled) = self.link.poll_fill(context) {
            return Poll::Ready(filled.map(|()| MqttEvent::Filled));
        }
        Poll::Pending
    }

    /// Performs a rare step, or one of a device without subscriptions.
    async fn follow(&mut self, step: SessionStep) -> Result<(), MqttEnd> {
        match self.session.follow(step).await.map_err(MqttEnd::Closed)? {
            // They stay in the ledger, and are looked up when the device subscribes.
            Some(_) if !self.subscriptions.is_open() => Ok(()),
            Some(SessionEvent::Messages(messages)) => self.give(messages).await,
            Some(SessionEvent::Deleted(count)) => self.write_deletion(count).await,
            None => Ok(()),
        }
    }

    /// Reopens the mailbox: waiting messages are looked up, including those skipped while the device had no subscription.
    async fn open_mailbox(&mut self) -> Result<(), MqttEnd> {
        let window = usize::from(self.window).saturating_sub(self.flight.len());
        let opened = self.gateway.open(self.session.identity(), DeviceProtocol::Mqtt, window);
        opened.end_after_silence(self.session.longest_silence());
        self.session = opened;
        // The former session may have ended for a change of keys, which this connection has not seen.
        match self.keys_as_of == self.gateway.cut_offs() {
            true => Ok(()),
            false => self.take_keys(LoginKeys::Unknown).await,
        }
    }

    async fn finish(self: Box<Self>, end: MqttEnd) {
        let Self { gateway, mut link, session_end, session, .. } = *self;
        let MqttSessionEnd { mut record, will } =
            session_end.map(|session_end| *session_end).unwrap_or_default();
        let (stopping, identity) = (link.stopping.clone(), session.identity());
        // Ended first, so that chunks settled from now on are not offered to a closing connection.
        drop(session);
        if let Some(fault) = end.fault() {
            link.writer.leave(fault);
        }
        link.close().await;
        // A stopping server leaves the sessions as they are: their devices come back at once.
        let stops = stopping.is_cancelled() || matches!(end, MqttEnd::Closed(Closed::Stopping));
        // Before the will, whose delay may be long: the session's lifetime runs from here.
        if let Some(open) = record.as_deref().filter(|_| !stops) {
            match session_record::end(&gateway, identity, open, end.session_expiry()).await {
                Ok(ended) => record = Some(ended.into()),
                Err(error) => {
                    tracing::warn!(?error, "the end of a connection of MQTT could not be noted");
                }
            }
        }
        if end.leaves_will()
            && !stopping.is_cancelled()
            && let Some(will) = will
        {
            let (record, changed) = (record.as_deref(), end.session_expiry());
            will.send(&gateway, identity, record, changed, &stopping).await;
        }
    }
}
