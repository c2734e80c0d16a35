//! The queue towards app servers: messages from devices, and receipts. Each waits until a connection has acknowledged it.

use super::{CcsService, errors};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The maximum number of waiting messages, for all app servers together.
const MAX_WAITING: usize = 10_000;
/// The maximum number of pending messages with a time to live, per device.
const MAX_PER_DEVICE: u32 = 20;
const MAX_TTL_S: u64 = 2_419_200;

/// A message that a device sends to an app server.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InjectedMessage {
    /// The sender id of the receiving app server.
    pub sender_id: String,
    /// The token of the device; an invented one if absent.
    pub from: Option<String>,
    /// The package of the app; the emulator's if absent.
    pub category: Option<String>,
    /// The data: an object of strings.
    pub data: Map<String, Value>,
    /// The id; a new one if absent.
    pub message_id: Option<String>,
    /// The time to live in seconds; four weeks if absent. With 0 the message is sent once and never again.
    pub time_to_live: Option<u64>,
}

/// Shows the sender id and the message id, never a token or data.
impl std::fmt::Debug for InjectedMessage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("InjectedMessage");
        shown.field("sender_id", &self.sender_id).field("message_id", &self.message_id);
        shown.finish_non_exhaustive()
    }
}

/// The reason for rejecting a message of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamRefusal {
    /// It names no sender.
    #[error("sender_id is missing")]
    NoSender,
    /// The time to live is more than four weeks.
    #[error("time_to_live is at most {MAX_TTL_S} seconds")]
    TimeToLive,
    /// Too many messages wait for app servers.
    #[error("more than {MAX_WAITING} messages wait")]
    Full,
    /// The device has too many messages that are not acknowledged.
    #[error("more than {MAX_PER_DEVICE} messages of this device wait")]
    DeviceFull,
}

/// Counts of messages and receipts for app servers, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamTotals {
    /// Waiting for a connection.
    pub waiting: u64,
    /// Sent and not acknowledged.
    pub unacked: u64,
    /// Messages that were acknowledged.
    pub acked: u64,
    /// Sent once more, because a connection ended before it acknowledged them.
    pub resent: u64,
    /// Dropped, because their time to live had passed.
    pub expired: u64,
}

/// A message on its way to an app server.
pub(super) struct UpstreamItem {
    pub(super) id: String,
    pub(super) json: Value,
    device: Option<String>,
    until: Instant,
    sent: bool,
}

/// Messages waiting for app servers, by sender id.
pub(super) struct UpstreamQueue {
    state: Mutex<UpstreamState>,
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct UpstreamState {
    waiting: HashMap<String, VecDeque<UpstreamItem>>,
    by_device: HashMap<String, u32>,
    totals: UpstreamTotals,
}

impl Default for UpstreamQueue {
    fn default() -> Self {
        Self { state: Mutex::default(), changes: watch::Sender::new(()) }
    }
}

impl UpstreamQueue {
    /// Returns a receiver that is notified when a message is queued.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    pub(super) fn totals(&self) -> UpstreamTotals {
        self.state().totals
    }

    fn put(&self, sender_id: &str, item: UpstreamItem) -> Result<(), UpstreamRefusal> {
        self.state().put(sender_id, item)?;
        self.changes.send_replace(());
        Ok(())
    }

    /// Takes the oldest waiting message of a sender, to be sent now.
    pub(super) fn take(&self, sender_id: &str, now: Instant) -> Option<UpstreamItem> {
        self.state().take(sender_id, now)
    }

    /// Removes an acknowledged message.
    pub(super) fn acknowledge(&self, item: &UpstreamItem) {
        let mut state = self.state();
        state.totals.unacked -= 1;
        state.totals.acked += 1;
        state.forget(item);
    }

    /// Requeues, in order, the messages that a connection has not acknowledged, for the next connection.
    pub(super) fn give_back(&self, sender_id: &str, items: impl DoubleEndedIterator<Item = UpstreamItem>) {
        let mut state = self.state();
        for item in items.rev() {
            state.totals.unacked -= 1;
            state.totals.waiting += 1;
            state.waiting.entry(sender_id.to_owned()).or_default().push_front(item);
        }
        // The lock is released before the waiters are woken, because they take it at once.
        drop(state);
        self.changes.send_replace(());
    }

    fn state(&self) -> MutexGuard<'_, UpstreamState> {
        self.state.lock()
    }
}

impl UpstreamState {
    fn put(&mut self, sender_id: &str, item: UpstreamItem) -> Result<(), UpstreamRefusal> {
        if self.totals.waiting + self.totals.unacked >= MAX_WAITING as u64 {
            return Err(UpstreamRefusal::Full);
        }
        if let Some(device) = &item.device {
            let theirs = self.by_device.entry(device.clone()).or_default();
            if *theirs >= MAX_PER_DEVICE {
                return Err(UpstreamRefusal::DeviceFull);
            }
            *theirs += 1;
        }
        self.totals.waiting += 1;
        self.waiting.entry(sender_id.to_owned()).or_default().push_back(item);
        Ok(())
    }

    fn take(&mut self, sender_id: &str, now: Instant) -> Option<UpstreamItem> {
        let queue = self.waiting.get_mut(sender_id)?;
        let mut expired = Vec::new();
        let taken = loop {
            match queue.pop_front() {
                // Items without a device (receipts, and messages without a time to live) are sent once, however late.
                Some(item) if item.until <= now && (item.sent || item.device.is_some()) => expired.push(item),
                other => break other,
            }
        };
        if queue.is_empty() {
            self.waiting.remove(sender_id);
        }
        for item in &expired {
            self.totals.waiting -= 1;
            self.totals.expired += 1;
            self.forget(item);
        }
        let mut item = taken?;
        self.totals.waiting -= 1;
        self.totals.unacked += 1;
        self.totals.resent += u64::from(item.sent);
        item.sent = true;
        Some(item)
    }

    /// Frees the device's place.
    fn forget(&mut self, item: &UpstreamItem) {
        let Some(device) = &item.device else { return };
        if let Some(theirs) = self.by_device.get_mut(device) {
            *theirs -= 1;
            if *theirs == 0 {
                self.by_device.remove(device);
            }
        }
    }
}

impl CcsService {
    /// Sends a message from a device.
    pub(super) fn send_upstream(&self, message: InjectedMessage) -> Result<String, UpstreamRefusal> {
        if message.sender_id.is_empty() {
            return Err(UpstreamRefusal::NoSender);
        }
        let ttl_s = message.time_to_live.unwrap_or(MAX_TTL_S);
        if ttl_s > MAX_TTL_S {
            return Err(UpstreamRefusal::TimeToLive);
        }
        let id = message.message_id.filter(|id| !id.is_empty());
        let id = id.unwrap_or_else(|| format!("up-{:016x}", self.backend.number()));
        let from = message.from.unwrap_or_else(|| format!("device-{:016x}", self.backend.number()));
        let category = message.category.unwrap_or_else(|| self.options.package.clone());
        let json = json!({"category": category, "data": message.data, "message_id": id, "from": from});
        // A message with a time to live of 0 is sent once and does not count for its device.
        let device = (ttl_s > 0).then_some(from);
        let until = Instant::now() + Duration::from_secs(ttl_s);
        let item = UpstreamItem { id: id.clone(), json, device, until, sent: false };
        self.upstream.put(&message.sender_id, item)?;
        Ok(id)
    }

    /// Notifies an app server that a device has got a message. Is dropped when too much waits.
    pub(super) fn send_receipt(&self, sender_id: &str, message_id: &str, token: &str) {
        let id = format!("dr2:{message_id}");
        let json = json!({
            "message_type": "receipt",
            "from": super::CcsGeneration::Gcm.domain(),
            "message_id": id,
            "category": self.options.package,
            "data": {
                "message_status": "MESSAGE_SENT_TO_DEVICE",
                "original_message_id": message_id,
                "device_registration_id": token,
            },
        });
        let until = Instant::now() + Duration::from_secs(MAX_TTL_S);
        let _ = self.upstream.put(sender_id, UpstreamItem { id, json, device: None, until, sent: false });
    }

    /// Builds the nack for an acknowledgement that matches no pending message.
    pub(super) fn bad_ack(message_id: &str, from: &str) -> Value {
        json!({
            "message_type": "nack",
            "message_id": message_id,
            "from": from,
            "error": errors::BAD_ACK,
            "error_description": errors::sentence(errors::BAD_ACK),
        })
    }
}
