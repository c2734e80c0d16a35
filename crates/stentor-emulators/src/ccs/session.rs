//! One connection, without IO: bytes and due times go in, bytes come out.

use super::downstream::CcsReply;
use super::iq::{self, IqAsker};
use super::stanza::{self, BIND, CLIENT, GCM, STREAMS};
use super::upstream::UpstreamItem;
use super::xml::{StreamEvent, StreamFault, StreamReader, XmppElement};
use super::{CcsService, login};
use crate::policy::{AfterGoAway, GoAway};
use crate::service::WireTotals;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The login timeout of a client.
const LOGIN_LIMIT: Duration = Duration::from_secs(60);
/// The maximum number of failed logins on one connection.
const MAX_LOGIN_FAILURES: u32 = 5;

/// A connection of an app server.
pub(crate) struct CcsSession {
    pub(super) service: Arc<CcsService>,
    connection: u64,
    reader: StreamReader,
    /// True while our root element is open.
    opened: bool,
    out: Vec<u8>,
    sender_id: Option<String>,
    bound: bool,
    login_failures: u32,
    login_until: Instant,
    ended: bool,
    /// The end of its life, and what follows.
    life: Option<(Instant, AfterGoAway)>,
    /// The action that follows the announcement that the connection is draining.
    pub(super) draining: Option<AfterGoAway>,
    /// The number of messages for devices received.
    pub(super) seen: u64,
    written: u64,
    /// The answers that wait for their time, and those that wait for a release.
    pub(super) delayed: BTreeMap<(Instant, u64), CcsReply>,
    pub(super) stalled: Vec<CcsReply>,
    unacked: VecDeque<UpstreamItem>,
}

impl CcsSession {
    /// Begins a connection.
    pub(crate) fn new(service: Arc<CcsService>, now: Instant) -> Self {
        let connection = WireTotals::add(&service.backend.context.wire.connections);
        let life = service.backend.context.policy.judge().life(connection);
        Self {
            connection,
            life: life.map(|(time, then)| (now + time, then)),
            service,
            reader: StreamReader::new(),
            opened: false,
            out: Vec::new(),
            sender_id: None,
            bound: false,
            login_failures: 0,
            login_until: now + LOGIN_LIMIT,
            ended: false,
            draining: None,
            seen: 0,
            written: 0,
            delayed: BTreeMap::new(),
            stalled: Vec::new(),
            unacked: VecDeque::new(),
        }
    }

    /// Processes received bytes. Bytes after the end of the session are ignored.
    pub(crate) fn receive(&mut self, bytes: &[u8], now: Instant) {
        let mut rest = bytes;
        while !self.ended {
            match self.reader.read(&mut rest) {
                Ok(None) => return,
                Ok(Some(event)) => self.take(event, now),
                Err(StreamFault::NotWellFormed) => self.fail("not-well-formed"),
                Err(StreamFault::TooLarge) => self.fail("policy-violation"),
            }
        }
    }

    /// Takes the pending output.
    pub(crate) fn take_out(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Returns true if the connection is to be closed once everything is written.
    pub(crate) fn is_over(&self) -> bool {
        self.ended
    }

    /// Returns when [`Self::send_due`] has something to do.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let answer = self.delayed.keys().next().map(|(due, _)| *due);
        let login = self.sender_id.is_none().then_some(self.login_until);
        let life = self.life.map(|(end, _)| end);
        answer.into_iter().chain(login).chain(life).min()
    }

    /// Sends the responses that are due, and the messages waiting for the app server.
    pub(crate) fn send_due(&mut self, now: Instant) {
        while let Some(entry) = self.delayed.first_entry().filter(|entry| entry.key().0 <= now) {
            let reply = entry.remove();
            self.answer(reply);
        }
        if self.sender_id.is_none() && self.login_until <= now {
            self.fail("connection-timeout");
        }
        if let Some((_, then)) = self.life.take_if(|(end, _)| *end <= now) {
            self.drain(&GoAway { then, ..GoAway::default() });
        }
        self.send_upstream(now);
        // After the responses: the last of them may have been the one that the drain waited for.
        self.leave_when_drained();
        let pending = self.pending();
        self.service.app_servers.note(self.connection, self.draining.is_some(), pending, self.unacked.len());
    }

    /// Sends the answers that were stalled.
    pub(crate) fn release(&mut self) {
        for reply in std::mem::take(&mut self.stalled) {
            self.answer(reply);
        }
    }

    /// Announces that the connection is draining, and closes it as `goaway` specifies.
    pub(crate) fn drain(&mut self, goaway: &GoAway) {
        // A client that has no resource yet is sent no stanza (RFC 6120, section 7.1).
        if self.ended || self.draining.is_some() || !self.bound {
            return;
        }
        self.draining = Some(goaway.then);
        WireTotals::add(&self.service.backend.context.wire.goaways);
        self.write_json(
            &json!({"message_type": "control", "control_type": super::errors::CONNECTION_DRAINING}),
        );
        if goaway.then == AfterGoAway::Close {
            self.end();
        }
    }

    /// Drains the connection if the policy requires it.
    pub(super) fn drain_as_planned(&mut self) {
        let judge = self.service.backend.context.policy.judge();
        let Some(goaway) = &judge.policy.goaway else { return };
        let meant = goaway.connections.is_none_or(|limit| self.connection <= limit);
        if meant && self.seen >= goaway.after_requests {
            self.drain(goaway);
        }
    }

    /// Returns the number of messages for devices that have no response yet.
    pub(super) fn pending(&self) -> usize {
        self.delayed.len() + self.stalled.len()
    }

    /// Closes the stream in order.
    fn end(&mut self) {
        self.write(stanza::closing());
        self.ended = true;
    }

    /// Aborts the connection without further output.
    pub(super) fn abort(&mut self) {
        self.ended = true;
    }

    /// Closes the stream with an error, for which our root must be open (RFC 6120, section 4.9.1.2).
    fn fail(&mut self, condition: &str) {
        if !self.opened {
            self.open_root();
        }
        self.write(&stanza::stream_error(condition));
        self.end();
    }

    pub(super) fn write(&mut self, text: &str) {
        if !self.ended {
            self.out.extend_from_slice(text.as_bytes());
        }
    }

    /// Writes a message with JSON.
    pub(super) fn write_json(&mut self, json: &Value) {
        self.written += 1;
        let id = format!("ccs-{}-{}", self.connection, self.written);
        self.write(&stanza::message(&id, json));
    }

    fn take(&mut self, event: StreamEvent, now: Instant) {
        match event {
            StreamEvent::Opened(root) if root.is(STREAMS, "stream") => self.open(),
            StreamEvent::Opened(_) => {
                self.fail("invalid-namespace");
            }
            StreamEvent::Closed => self.end(),
            StreamEvent::Element(element) if self.sender_id.is_none() => self.log_in(&element),
            StreamEvent::Element(element) => self.take_stanza(&element, now),
        }
    }

    /// Answers the start of the root element. The name under which the client addresses the server is ignored.
    fn open(&mut self) {
        self.open_root();
        // The root is opened again after the login, and then offers the next features (RFC 6120, section 6.4.6).
        let features = if self.sender_id.is_some() { stanza::features() } else { stanza::login_features() };
        self.write(&features);
    }

    fn open_root(&mut self) {
        self.opened = true;
        let domain = self.service.options.generation.domain();
        self.write(&stanza::opening(domain, &format!("{:016x}", self.service.backend.number())));
    }

    fn log_in(&mut self, element: &XmppElement) {
        match login::sender_of(element, &self.service.options) {
            Ok(sender_id) if self.service.app_servers.join(self.connection, &sender_id) => {
                self.sender_id = Some(sender_id);
                self.write(&stanza::success());
                // The client begins another document (RFC 6120, section 6.4.6).
                self.reader = StreamReader::new();
                self.opened = false;
            }
            Ok(_) => self.fail("policy-violation"),
            Err(condition) => {
                self.login_failures += 1;
                self.write(&stanza::failure(condition));
                // RFC 6120, section 6.4.5, recommends two to five tries.
                if self.login_failures >= MAX_LOGIN_FAILURES {
                    self.end();
                }
            }
        }
    }

    fn take_stanza(&mut self, element: &XmppElement, now: Instant) {
        if element.namespace != CLIENT {
            return self.fail("unsupported-stanza-type");
        }
        match element.name.as_str() {
            "iq" => self.take_iq(element),
            "message" if element.attribute("type") != Some("error") => {
                if let Some(gcm) = element.child(GCM, "gcm") {
                    self.take_gcm(element.attribute("id"), &gcm.text, now);
                }
            }
            // Clients announce their presence by habit: the service has no use for it.
            "message" | "presence" => {}
            _ => self.fail("unsupported-stanza-type"),
        }
    }

    fn take_iq(&mut self, element: &XmppElement) {
        let domain = self.service.options.generation.domain();
        let sender_id = self.sender_id.as_deref().unwrap_or_default();
        let resource = format!("r{:x}", self.connection);
        let answer = iq::answer(element, &IqAsker { sender_id, domain, resource: &resource });
        self.bound |= element.child(BIND, "bind").is_some();
        if let Some(answer) = answer {
            self.write(&answer);
        }
    }

    /// Returns the sender id of the connection.
    pub(super) fn sender_id(&self) -> &str {
        self.sender_id.as_deref().unwrap_or_default()
    }

    /// Ends a message that the app server acknowledges; false when none waits under this id on this connection.
    pub(super) fn acknowledge(&mut self, message_id: &str) -> bool {
        // At most a hundred wait, and clients acknowledge them in their order.
        let place = self.unacked.iter().position(|item| item.id == message_id);
        let Some(item) = place.and_then(|place| self.unacked.remove(place)) else { return false };
        self.service.upstream.acknowledge(&item);
        true
    }

    /// Sends waiting upstream messages within the limit of unacknowledged ones.
    fn send_upstream(&mut self, now: Instant) {
        let most = self.service.options.max_upstream_in_flight as usize;
        // A draining connection gets nothing new: its client was requested to connect again.
        while self.bound && !self.ended && self.draining.is_none() && self.unacked.len() < most {
            let Some(item) = self.service.upstream.take(self.sender_id.as_deref().unwrap_or_default(), now)
            else {
                return;
            };
            self.write_json(&item.json);
            self.unacked.push_back(item);
        }
    }

    fn leave_when_drained(&mut self) {
        if !self.ended && self.draining == Some(AfterGoAway::Drain) && self.pending() == 0 {
            self.end();
        }
    }
}

impl Drop for CcsSession {
    fn drop(&mut self) {
        let Some(sender_id) = &self.sender_id else { return };
        self.service.app_servers.leave(self.connection);
        self.service.upstream.give_back(sender_id, self.unacked.drain(..));
    }
}
