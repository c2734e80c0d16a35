//! Stanzas from an app server: messages for devices, and acknowledgements of upstream messages.

use super::errors::{self, CONNECTION_DRAINING, INVALID_JSON, UNAVAILABLE};
use super::{CcsService, CcsSession, stanza};
use crate::gcm::{GcmAddress, GcmJudge, GcmMessage, GcmRefusal, GcmVerdict, switch, text};
use crate::json::JsonNode;
use crate::policy::Wait;
use crate::service::{PendingCount, WireTotals};
use serde_json::{Value, json};
use tokio::time::Instant;

/// An answer about one message, which may wait.
pub(super) struct CcsReply {
    json: Value,
    /// The pending count of this message, taken when the message is accepted or rejected.
    count: Option<PendingCount>,
    /// The message's id and the token of a receipt that follows.
    receipt: Option<(String, String)>,
}

/// The addressing fields of a message for devices.
struct CcsEnvelope<'a> {
    id: &'a str,
    /// The value of `from` in the response.
    to: &'a str,
    address: Option<GcmAddress<'a>>,
    receipt: bool,
}

impl CcsSession {
    /// Processes the JSON of one stanza.
    pub(super) fn take_gcm(&mut self, stanza_id: Option<&str>, json: &str, now: Instant) {
        let request = JsonNode::parse(json.trim().as_bytes()).filter(|request| request.entries().is_some());
        let Some(request) = request else {
            return self.unreadable(stanza_id, json, "the text is not a JSON object");
        };
        let id = match text(&request, "message_id") {
            Ok(Some(id)) if !id.is_empty() => id,
            Ok(_) => return self.unreadable(stanza_id, json, "Missing Required Field: message_id"),
            Err(_) => return self.unreadable(stanza_id, json, "Field \"message_id\" must be a JSON string"),
        };
        let to = text(&request, "to").ok().flatten();
        match text(&request, "message_type") {
            Ok(None) => self.take_message(id, &request, now),
            Ok(Some("ack")) if self.acknowledge(id) => {}
            Ok(Some("ack")) => self.write_json(&CcsService::bad_ack(id, to.unwrap_or_default())),
            // A nack from the app server is ignored: the service waits for the acknowledgement.
            Ok(Some("nack")) => {}
            _ => self.nack(id, to.unwrap_or_default(), INVALID_JSON, "InvalidJson: message_type".to_owned()),
        }
    }

    /// Refuses a message that cannot be read, in the form of RFC 6120, because it has no id to name.
    fn unreadable(&mut self, stanza_id: Option<&str>, json: &str, reason: &str) {
        let to = format!("{}@{}", self.sender_id(), self.service.options.generation.domain());
        let sentence = format!("InvalidJson: JSON_PARSING_ERROR : {reason}\n");
        self.write(&stanza::message_error(stanza_id, &to, json, &sentence));
    }

    fn nack(&mut self, id: &str, from: &str, code: &str, description: String) {
        self.write_json(&nack(id, from, code, description));
    }

    fn take_message(&mut self, id: &str, request: &JsonNode<'_>, now: Instant) {
        let (wire, limit) = {
            let context = &self.service.backend.context;
            (&context.wire, context.limits.max_concurrent_streams as usize)
        };
        WireTotals::add(&wire.requests);
        let envelope = match CcsEnvelope::read(id, request) {
            Ok(envelope) => envelope,
            Err(sentence) => return self.nack(id, "", INVALID_JSON, sentence),
        };
        if self.draining.is_some() {
            WireTotals::add(&wire.unprocessed);
            let sentence = errors::sentence(CONNECTION_DRAINING).unwrap_or_default().to_owned();
            return self.nack(id, envelope.to, CONNECTION_DRAINING, sentence);
        }
        // Google's documentation allows a hundred messages without a response. Messages beyond that are rejected, not queued.
        if self.pending() >= limit {
            WireTotals::add(&wire.refused);
            let sentence = format!("More than {limit} messages are pending on this connection");
            return self.nack(id, envelope.to, UNAVAILABLE, sentence);
        }
        self.seen += 1;
        self.decide(&envelope, request, now);
        self.drain_as_planned();
    }

    fn decide(&mut self, envelope: &CcsEnvelope<'_>, request: &JsonNode<'_>, now: Instant) {
        // A separate handle, because the session is modified while the policy and the faults are read.
        let service = std::sync::Arc::clone(&self.service);
        let context = &service.backend.context;
        if context.faults.take_reset().is_some() {
            WireTotals::add(&context.wire.resets);
            return self.abort();
        }
        let message = match GcmMessage::check(request, service.options.data_overhead_bytes) {
            Err(GcmRefusal::Malformed(sentence)) => {
                return self.nack(envelope.id, envelope.to, INVALID_JSON, format!("InvalidJson: {sentence}"));
            }
            Err(GcmRefusal::Code(code)) => Err(code),
            Ok(message) => Ok(message),
        };
        let Some(address) = envelope.address else {
            return self.nack(envelope.id, "", INVALID_JSON, "InvalidJson: MissingRegistration".to_owned());
        };
        // One policy for the whole message: it may be replaced at any moment.
        let judge = context.policy.judge();
        let gcm_judge = GcmJudge { judge: &judge, number: self.seen };
        let answer = service.backend.send(gcm_judge, address, message.as_ref().map_err(|code| *code));
        let is_dry = message.is_ok_and(|message| message.dry_run);
        let wait = if context.faults.is_stalled() { Wait::Released } else { answer.wait };
        let Some(json) = self.word(envelope, &answer.verdict) else {
            WireTotals::add(&context.wire.resets);
            return self.abort();
        };
        let is_sent = matches!(answer.verdict, GcmVerdict::Sent { .. });
        let receipt = match address {
            GcmAddress::Token(token) if is_sent && envelope.receipt && !is_dry => {
                Some((envelope.id.to_owned(), token.to_owned()))
            }
            _ => None,
        };
        let mut reply = CcsReply { json, count: answer.count, receipt };
        // As in the other services, a message that has arrived is counted, unless it is stalled before it is accepted.
        if wait != Wait::Released || judge.takes_over_stalled() {
            self.settle(&mut reply);
        }
        self.answer_after(wait, reply, now);
    }

    fn answer_after(&mut self, wait: Wait, reply: CcsReply, now: Instant) {
        match wait {
            Wait::None => self.answer(reply),
            Wait::For(delay) => {
                // The number keeps answers of one instant apart, in the order of their messages.
                self.delayed.insert((now + delay, self.seen), reply);
            }
            Wait::Released => self.stalled.push(reply),
        }
    }

    /// Builds the response to a message. Returns `None` when the connection must be aborted.
    fn word(&self, envelope: &CcsEnvelope<'_>, verdict: &GcmVerdict) -> Option<Value> {
        match verdict {
            GcmVerdict::Sent { canonical, .. } => {
                let mut ack = json!({"from": envelope.to, "message_id": envelope.id, "message_type": "ack"});
                if let Some(token) = canonical {
                    ack["registration_id"] = json!(token);
                }
                Some(ack)
            }
            GcmVerdict::Refused(refusal) => {
                let (code, sentence) = errors::in_xmpp(&refusal.code, self.service.options.generation);
                Some(nack(envelope.id, envelope.to, code, sentence))
            }
            GcmVerdict::Reset(_) => None,
        }
    }

    fn settle(&self, reply: &mut CcsReply) {
        if let Some(count) = reply.count.take() {
            self.service.backend.settle(count);
        }
    }

    /// Sends an answer, and the receipt after it.
    pub(super) fn answer(&mut self, mut reply: CcsReply) {
        // Counted before the response is readable: a client that has read it finds it counted.
        self.settle(&mut reply);
        self.write_json(&reply.json);
        if let Some((message_id, token)) = reply.receipt {
            self.service.send_receipt(self.sender_id(), &message_id, &token);
        }
    }
}

impl<'a> CcsEnvelope<'a> {
    /// Reads a message's own fields. Fails with a sentence.
    fn read(id: &'a str, request: &'a JsonNode<'a>) -> Result<Self, String> {
        let sentence = |refusal| match refusal {
            GcmRefusal::Malformed(sentence) => format!("InvalidJson: {sentence}"),
            GcmRefusal::Code(code) => format!("InvalidJson: {code}"),
        };
        let to = text(request, "to").map_err(sentence)?.filter(|to| !to.is_empty());
        let condition = text(request, "condition").map_err(sentence)?;
        let address = to.map(GcmAddress::to).or(condition.map(GcmAddress::Condition));
        let receipt = switch(request, "delivery_receipt_requested").map_err(sentence)?;
        Ok(Self { id, to: to.or(condition).unwrap_or_default(), address, receipt })
    }
}

/// Builds a nack. `from` is the address that the message was sent to.
fn nack(id: &str, from: &str, code: &str, description: String) -> Value {
    let mut nack = json!({"message_id": id, "message_type": "nack", "error": code});
    nack["error_description"] = json!(description);
    if !from.is_empty() {
        nack["from"] = json!(from);
    }
    nack
}
