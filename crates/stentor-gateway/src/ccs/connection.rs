//! The connection of an app server after its login: its messages go to devices, and devices' messages go to it.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::{Map, Value};
use stentor_core::id::UpstreamId;
use stentor_core::time::Timestamp;
use stentor_core::upstream::{UpstreamKind, UpstreamMessage};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::element::{CcsElement, escaped};
use super::iq::{self, IqKind};
use super::login::{CcsEra, CcsLogin};
use super::payload::{self, CcsPayload, CcsRefusal, PAYLOAD_NAMESPACE, RECEIPT_PREFIX};
use super::reader::XmppEvent;
use super::stream::{CcsEnd, XmppStream};
use super::{CcsAppSession, CcsLoginError, CcsServer};
use crate::limits::{
    CCS_DRAIN, CCS_IDLE, CCS_SENDS_MAX_COUNT, UPSTREAM_LOOK_INTERVAL, UPSTREAM_WINDOW_MAX_COUNT,
};
use crate::sender_receipts::original_id;

/// Request to an idle client, sent after half its idle time: any reply keeps the connection.
const PING: &str = "<iq type='get' id='alive'><ping xmlns='urn:xmpp:ping'/></iq>";

/// The connection of one app server.
pub(super) struct CcsConnection<S> {
    stream: XmppStream<S>,
    server: CcsServer,
    session: Arc<dyn CcsAppSession>,
    /// The client's address, without its resource.
    user: String,
    generation: CcsEra,
    /// Messages being written to disk; each future yields the stanza that answers its message.
    sends: FuturesUnordered<BoxFuture<'static, String>>,
    /// Messages of devices that this client has not acknowledged, with their expiry, by device and key. Receipts have an empty device.
    handed: HashMap<(String, String), (UpstreamId, Timestamp)>,
    is_bound: bool,
    /// The deadline of work in progress, once the server stops.
    draining: Option<Instant>,
    received_at: Instant,
    was_pinged: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> CcsConnection<S> {
    pub(super) fn new(stream: XmppStream<S>, server: CcsServer, login: CcsLogin) -> Self {
        let CcsLogin { session, user, generation } = login;
        Self {
            stream,
            server,
            session,
            user: format!("{user}@{}", generation.domain()),
            generation,
            sends: FuturesUnordered::new(),
            handed: HashMap::new(),
            is_bound: false,
            draining: None,
            received_at: Instant::now(),
            was_pinged: false,
        }
    }

    /// Serves the connection until it ends, then closes the stream.
    pub(super) async fn run(mut self, stopping: CancellationToken) {
        let end = loop {
            if let Err(end) = self.serve(&stopping).await {
                break end;
            }
        };
        // Accepted messages are on disk; their replies are still worth a try.
        while let Some(answer) = self.sends.next().await {
            if self.stream.write(&answer).await.is_err() {
                break;
            }
        }
        self.stream.close(&end).await;
    }

    /// Serves until the client is bound or a drain begins.
    async fn serve(&mut self, stopping: &CancellationToken) -> Result<(), CcsEnd> {
        // Nothing is handed over before the client has its address, nor during a drain.
        let mut arrivals = if self.is_bound && self.draining.is_none() {
            Some(pump(&self.server, self.session.app()))
        } else {
            None
        };
        let (was_bound, was_draining) = (self.is_bound, self.draining.is_some());
        while (was_bound, was_draining) == (self.is_bound, self.draining.is_some()) {
            let next_instant = self.next_instant();
            let found = async {
                match &mut arrivals {
                    Some((arrivals, _)) => arrivals.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // While the maximum is in progress, further stanzas stay in the socket and slow their client down.
                event = self.stream.next(), if self.sends.len() < CCS_SENDS_MAX_COUNT => self.take(event?).await?,
                Some(answer) = self.sends.next(), if !self.sends.is_empty() => self.stream.write(&answer).await?,
                found = found => self.hand_over(found.ok_or(CcsEnd::Gone)?).await?,
                () = stopping.cancelled(), if !was_draining => self.drain().await?,
                () = sleep_until(next_instant) => self.wake().await?,
            }
        }
        Ok(())
    }

    fn next_instant(&self) -> Instant {
        match self.draining {
            Some(until) => until,
            None if self.was_pinged => self.received_at + CCS_IDLE,
            None => self.received_at + CCS_IDLE / 2,
        }
    }

    /// Performs the due action: the end of a drain, a ping, or the end of a silent client.
    async fn wake(&mut self) -> Result<(), CcsEnd> {
        if self.draining.is_some() {
            return Err(CcsEnd::Gone);
        }
        if self.was_pinged {
            return Err(CcsEnd::Refused("connection-timeout"));
        }
        ask_key(self.session.as_ref()).await?;
        self.was_pinged = true;
        self.stream.write(PING).await
    }

    /// Announces the end of the connection, and grants some time to work in progress.
    async fn drain(&mut self) -> Result<(), CcsEnd> {
        self.draining = Some(Instant::now() + CCS_DRAIN);
        self.stream.write(&payload::stanza(&payload::draining())).await
    }

    async fn take(&mut self, event: XmppEvent) -> Result<(), CcsEnd> {
        (self.received_at, self.was_pinged) = (Instant::now(), false);
        match event {
            XmppEvent::Closed => Err(CcsEnd::Gone),
            XmppEvent::Opened(_) => Err(CcsEnd::Refused("bad-format")),
            XmppEvent::Stanza(stanza) => match stanza.name.as_str() {
                "iq" => self.ask(&stanza).await,
                "message" if self.is_bound => self.receive(&stanza).await,
                "message" => Err(CcsEnd::Refused("not-authorized")),
                // Clients announce their presence, which has no use here.
                "presence" => Ok(()),
                _ => Err(CcsEnd::Refused("unsupported-stanza-type")),
            },
        }
    }

    async fn ask(&mut self, stanza: &CcsElement) -> Result<(), CcsEnd> {
        // Checked here too, because an active client is never pinged.
        ask_key(self.session.as_ref()).await?;
        let (kind, answer) = iq::answer(stanza, &self.user);
        if let Some(answer) = answer {
            // The reply goes first, so that the client knows the address to which messages are handed over.
            self.stream.write(&answer).await?;
        }
        self.is_bound |= kind == IqKind::Bind;
        Ok(())
    }

    async fn receive(&mut self, stanza: &CcsElement) -> Result<(), CcsEnd> {
        // Anything else in a message, such as a body, is meant for people.
        let Some(payload) = stanza.child("gcm", PAYLOAD_NAMESPACE) else { return Ok(()) };
        match CcsPayload::read(&payload.text) {
            Ok(CcsPayload::Send { message_id, to, fields }) => self.send(message_id, to, fields).await,
            Ok(CcsPayload::Ack { message_id, to }) => self.acknowledged(message_id, to).await,
            // The message stays assigned to this client until it ends, and then goes to the next one.
            Ok(CcsPayload::Nack { .. }) => Ok(()),
            Err(problem) => self.stream.write(&unreadable(stanza, &payload.text, &problem)).await,
        }
    }

    async fn send(
        &mut self,
        message_id: String,
        to: String,
        fields: Map<String, Value>,
    ) -> Result<(), CcsEnd> {
        if self.draining.is_some() {
            let refusal =
                CcsRefusal::new("CONNECTION_DRAINING", "open a new connection and send the message there");
            return self.stream.write(&payload::stanza(&payload::nack(&to, &message_id, &refusal))).await;
        }
        let (session, generation) = (Arc::clone(&self.session), self.generation);
        // Replies come as messages reach the disk, in any order: each names its message.
        self.sends.push(Box::pin(async move {
            payload::stanza(&match session.send(fields).await {
                Ok(()) => payload::ack(&to, &message_id),
                Err(refusal) => payload::nack(&to, &message_id, &in_words_of(generation, refusal)),
            })
        }));
        Ok(())
    }

    async fn acknowledged(&mut self, message_id: String, to: String) -> Result<(), CcsEnd> {
        let found = self.handed.remove(&(to.clone(), message_id.clone()));
        let Some((id, _)) = found.or_else(|| self.handed.remove(&(String::new(), message_id.clone()))) else {
            if message_id.starts_with(RECEIPT_PREFIX) {
                return Ok(());
            }
            let refusal = CcsRefusal::new("BAD_ACK", "no message of this id waits for it on this connection");
            return self.stream.write(&payload::stanza(&payload::nack(&to, &message_id, &refusal))).await;
        };
        if let Err(error) = self.server.broker.settle(self.session.app(), &[id]).await {
            // The message is handed out again, which its id reveals.
            tracing::warn!(%error, %id, "an app server's acknowledgement could not be stored");
        }
        Ok(())
    }

    async fn hand_over(&mut self, messages: Vec<UpstreamMessage>) -> Result<(), CcsEnd> {
        // The key must be confirmed here. Otherwise the messages wait for the next connection.
        match self.session.still_allowed().await {
            Ok(()) => {}
            Err(CcsLoginError::Refused) => return Err(CcsEnd::Refused("not-authorized")),
            Err(CcsLoginError::Unavailable) => return Err(CcsEnd::Refused("internal-server-error")),
        }
        for message in messages {
            let found = self.server.gateway.store().device(message.app, message.device).await;
            // A deleted device has no token any more, but its message is still valid.
            let token =
                found.map_or_else(|_| message.device.to_string(), |device| device.token.expose().to_owned());
            let (payload, name) = match message.kind {
                UpstreamKind::Message => (payload::upstream(&message, &token), (token, message.key)),
                UpstreamKind::Receipt => {
                    let payload = payload::receipt(&message, &token, self.generation.domain());
                    // Clients acknowledge it to the service or to the device.
                    (payload, (String::new(), payload::receipt_id(&original_id(&message))))
                }
            };
            // Recorded after the write, so that only messages that the client may have seen can be acknowledged.
            self.stream.write(&payload::stanza(&payload)).await?;
            self.handed.insert(name, (message.id, message.expires_at));
        }
        self.forget_expired();
        Ok(())
    }
}

impl<S> CcsConnection<S> {
    /// Removes expired entries, so that a client that never acknowledges does not fill the memory.
    fn forget_expired(&mut self) {
        if self.handed.len() > 2 * UPSTREAM_WINDOW_MAX_COUNT {
            let now = self.server.gateway.clock().now();
            self.handed.retain(|_, (_, until)| *until > now);
        }
    }
}

/// Fetches messages of devices. Dropping the handle releases those it holds.
fn pump(
    server: &CcsServer,
    app: stentor_core::id::AppId,
) -> (mpsc::Receiver<Vec<UpstreamMessage>>, AbortOnDropHandle<()>) {
    let mut consumer = server.broker.consume_with_receipts(app, UPSTREAM_WINDOW_MAX_COUNT);
    let (out, arrivals) = mpsc::channel(1);
    let task = tokio::spawn(async move {
        loop {
            match consumer.next().await {
                Ok(messages) => {
                    if out.send(messages).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, %app, "the messages of devices cannot be read");
                    tokio::time::sleep(UPSTREAM_LOOK_INTERVAL).await;
                }
            }
        }
    });
    (arrivals, AbortOnDropHandle::new(task))
}

/// Ends a client with an invalid key. If the key cannot be checked now, the client stays.
async fn ask_key(session: &dyn CcsAppSession) -> Result<(), CcsEnd> {
    match session.still_allowed().await {
        Err(CcsLoginError::Refused) => Err(CcsEnd::Refused("not-authorized")),
        Ok(()) | Err(CcsLoginError::Unavailable) => Ok(()),
    }
}

/// Translates a refusal for a generation. In the older one, a token of another sender was an invalid registration.
fn in_words_of(generation: CcsEra, refusal: CcsRefusal) -> CcsRefusal {
    match (generation, refusal.error) {
        (CcsEra::Gcm, "SENDER_ID_MISMATCH") => CcsRefusal { error: "BAD_REGISTRATION", ..refusal },
        _ => refusal,
    }
}

/// Rejects a stanza with an unreadable payload, and quotes it.
pub(super) fn unreadable(stanza: &CcsElement, text: &str, problem: &str) -> String {
    let (id, text) = (escaped(stanza.attribute("id")), escaped(text));
    let problem = escaped(&format!("InvalidJson: {problem}"));
    format!(
        "<message id='{id}' type='error'><gcm xmlns='{PAYLOAD_NAMESPACE}'>{text}</gcm>\
         <error code='400' type='modify'><bad-request xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>\
         <text xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'>{problem}</text></error></message>"
    )
}
