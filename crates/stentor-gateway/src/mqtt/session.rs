//! A device that is logged in: what it asks for, and what it is given.

mod answers;
mod deliveries;

use mqtt_protocol_core::mqtt::result_code::DisconnectReasonCode;
use stentor_core::id::MessageId;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use super::fault::{MqttEnd, MqttFault};
use super::handshake::MqttEntrance;
use super::limits::{MqttLimits, WRITE_BYTES};
use super::link::MqttLink;
use super::request::MqttWill;
use super::session_record;
use super::subscriptions::MqttSubscriptions;
use super::upstream::draft_of;
use crate::gateway::Gateway;
use crate::identity::DeviceIdentity;
use crate::session::{DeviceSession, News};
use crate::session_state::Closed;
use crate::stats::DeviceProtocol;
use crate::web_push::PushKeys;

/// One connection from its login to its end.
pub(super) struct MqttSession<'a, S> {
    gateway: &'a Gateway,
    link: Box<MqttLink<S>>,
    stopping: CancellationToken,
    limits: &'a MqttLimits,
    entrance: Box<MqttEntrance>,
    session: DeviceSession,
    subscriptions: MqttSubscriptions,
    /// The device's, for which what it gets is sealed.
    keys: Option<PushKeys>,
    /// Deliveries of QoS 1 that the device has not acknowledged, by the number of their packet.
    flight: Vec<(u16, MessageId)>,
    last_packet_id: u16,
    /// When the last whole packet came.
    heard_at: Instant,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> MqttSession<'a, S> {
    pub(super) fn new(
        gateway: &'a Gateway,
        link: Box<MqttLink<S>>,
        limits: &'a MqttLimits,
        entrance: Box<MqttEntrance>,
    ) -> Self {
        // Before the first filter nothing is given, but the session has to be there: another one takes it over.
        let window = if entrance.is_resumed { entrance.window } else { 1 };
        let session = gateway.open(entrance.identity, DeviceProtocol::Mqtt, window);
        let subscriptions = MqttSubscriptions::new(entrance.is_resumed);
        let stopping = link.stopping.clone();
        Self {
            gateway,
            link,
            stopping,
            limits,
            entrance,
            session,
            subscriptions,
            keys: None,
            flight: Vec::new(),
            last_packet_id: 0,
            heard_at: Instant::now(),
        }
    }

    /// Serves it to its end.
    pub(super) async fn run(mut self) {
        let end = match Box::pin(self.read_keys()).await {
            Ok(()) => loop {
                if let Err(end) = self.turn().await {
                    break end;
                }
            },
            Err(end) => end,
        };
        Box::pin(self.finish(end)).await;
    }

    /// Reads the keys of the device, once its session is open: who changes them ends the sessions that are open.
    async fn read_keys(&mut self) -> Result<(), MqttEnd> {
        let unavailable = |_| MqttFault::new(DisconnectReasonCode::ServerBusy, "the store is unavailable");
        self.keys = self.gateway.device_keys(self.entrance.identity).await.map_err(unavailable)?;
        Ok(())
    }

    /// Answers all that has come, then waits for the next thing.
    async fn turn(&mut self) -> Result<(), MqttEnd> {
        while let Some(request) = self.link.reader.next()? {
            self.heard_at = Instant::now();
            Box::pin(self.answer(request)).await?;
            if self.link.writer.waiting_bytes() >= WRITE_BYTES {
                Box::pin(self.link.flush()).await?;
            }
        }
        if self.link.writer.waiting_bytes() > 0 {
            Box::pin(self.link.flush()).await?;
        }
        let silent_at = self.heard_at + self.entrance.silence_max;
        // Each of these may be cut off by another: what has come is in the reader, and what waits for the device in the ledger.
        let news = tokio::select! {
            filled = self.link.fill() => return filled,
            news = self.session.next() => news.map_err(MqttEnd::Closed)?,
            () = tokio::time::sleep_until(silent_at) => return Err(MqttEnd::Silent),
            () = self.stopping.cancelled() => return Err(MqttEnd::Closed(Closed::Stopping)),
        };
        if !self.subscriptions.is_open() {
            // It stays in the ledger, and is looked up when the device wants it.
            return Ok(());
        }
        match news {
            News::Messages(messages) => Box::pin(self.give(messages)).await,
            News::Deleted(count) => Box::pin(self.tell_deleted(count)).await,
        }
    }

    /// Opens the mailbox anew: what waits is looked up, also what was passed over while nobody wanted it.
    async fn open_mailbox(&mut self) -> Result<(), MqttEnd> {
        let window = self.entrance.window.saturating_sub(self.flight.len());
        self.session = self.gateway.open(self.entrance.identity, DeviceProtocol::Mqtt, window);
        self.read_keys().await
    }

    async fn finish(self, end: MqttEnd) {
        let Self { gateway, mut link, stopping, limits, entrance, session, .. } = self;
        drop(session);
        if let Some(fault) = end.fault() {
            link.writer.leave(fault);
        }
        link.close().await;
        if matches!(end, MqttEnd::Left { forgets: true, .. }) {
            let forgotten = session_record::forget(gateway, entrance.identity, &entrance.client_id).await;
            if let Err(error) = forgotten {
                tracing::warn!(%error, "a session of MQTT could not be forgotten");
            }
        }
        if end.leaves_will() && !stopping.is_cancelled() {
            let MqttEntrance { identity, is_kept, will, .. } = *entrance;
            if let Some(will) = will {
                // A session that is not kept ends here, and its will does not wait longer than it.
                let delay = Duration::from_secs(if is_kept { will.delay_seconds.into() } else { 0 });
                send_will(gateway, identity, &will, delay.min(limits.will_delay_max), &stopping).await;
            }
        }
    }
}

/// Sends what a device wanted to be said when it is gone, unless it is back before its delay is over (3.1.3.2.2 of MQTT 5).
async fn send_will(
    gateway: &Gateway,
    identity: DeviceIdentity,
    will: &MqttWill,
    delay: Duration,
    stopping: &CancellationToken,
) {
    if !delay.is_zero() {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = stopping.cancelled() => return,
        }
        if gateway.is_connected(identity.device) {
            return;
        }
    }
    let Some(draft) = draft_of(&will.publish) else { return };
    if let Err(error) = gateway.keep_upstream(identity, draft).await {
        tracing::warn!(%error, device = %identity.device, "a will could not be kept");
    }
}
