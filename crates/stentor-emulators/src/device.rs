//! The device side: tokens that are issued and expire, and devices that receive messages.

mod mailbox;
mod message_log;
#[cfg(test)]
mod tests;

use crate::clock::now_ms;
use crate::dice::mix;
use crate::observer::token_hash;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use mailbox::Mailbox;
pub(crate) use mailbox::Storage;
use message_log::MessageLog;
pub(crate) use message_log::MessagePage;
use parking_lot::{Mutex, MutexGuard, RwLock};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const MAX_REPLACEMENTS: usize = 16;

/// The format of a push service's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// 64 hexadecimal digits, as APNs issues them.
    Hex64,
    /// An installation id, a colon and 140 characters, as FCM issues them.
    Installation,
    /// 43 characters of base64url, for the path of a Web Push subscription.
    Path,
    /// Base64 of 96 bytes, as in the query of a WNS channel.
    Base64,
}

/// A message as a device sees it.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceMessage {
    /// The push service's id of the message.
    pub message_id: String,
    /// Newer messages with the same key replace older ones while the device is away.
    pub collapse_key: Option<String>,
    /// The APNs topic, or the FCM topic or the channel of APNs that it was sent to.
    pub topic: Option<String>,
    /// The APNs push type, or the type of a notification of WNS.
    pub push_type: Option<String>,
    /// True if the message may wake the device.
    pub high_priority: bool,
    /// The payload as it was sent; of an encrypted message its clear text.
    pub payload: serde_json::Value,
}

/// Shows the ids; the payload may name a token.
impl std::fmt::Debug for DeviceMessage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("DeviceMessage");
        shown.field("message_id", &self.message_id).field("topic", &self.topic).finish_non_exhaustive()
    }
}

/// An accepted message, as reported to a follower.
#[derive(Clone, PartialEq)]
pub struct FollowedMessage {
    /// The device's token, registered with the emulator or not.
    pub token: String,
    /// The message.
    pub message: DeviceMessage,
}

/// Shows the message's ids, and no token.
impl std::fmt::Debug for FollowedMessage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("FollowedMessage").field("message", &self.message).finish_non_exhaustive()
    }
}

/// A message on its way to devices.
pub(crate) struct Delivery {
    /// The hashes of their tokens.
    pub(crate) devices: Vec<u64>,
    /// Their tokens, if a follower listens.
    pub(crate) tokens: Vec<String>,
    /// The target as it is counted, if messages are kept.
    pub(crate) target: Option<String>,
    pub(crate) message: DeviceMessage,
    pub(crate) storage: Storage,
}

/// The state of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceState {
    Unknown,
    Live,
    Expired { since_ms: u64, end: TokenEnd },
    OtherTopic,
}

/// The way in which a token ended; only APNs tells one from the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum TokenEnd {
    /// The device is inactive for the app.
    #[default]
    Unregistered,
    /// The token itself has expired.
    ExpiredToken,
}

/// The registration request of a device.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokenRegistration {
    /// The token to use; a new one is issued if absent.
    pub token: Option<String>,
    /// The bundle id (APNs) or the client (WNS) that the token belongs to; sending with another one is refused.
    pub topic: Option<String>,
}

/// All devices that have registered with one emulator.
pub struct Devices {
    kind: TokenKind,
    seed: u64,
    issued: AtomicU64,
    registered: AtomicU64,
    devices: RwLock<HashMap<u64, Mutex<EmulatedDevice>>>,
    follower: RwLock<Option<UnboundedSender<FollowedMessage>>>,
    messages: OnceLock<MessageLog>,
}

#[derive(Default)]
struct EmulatedDevice {
    topic: Option<String>,
    ended: Option<(u64, TokenEnd)>,
    replaced_by: Option<String>,
    mailbox: Mailbox,
}

impl Devices {
    pub(crate) fn new(kind: TokenKind, seed: u64) -> Self {
        let (issued, registered) = (AtomicU64::new(0), AtomicU64::new(0));
        Self {
            kind,
            seed,
            issued,
            registered,
            devices: RwLock::default(),
            follower: RwLock::default(),
            messages: OnceLock::new(),
        }
    }

    /// Registers a device and returns its token; a token that had expired lives again.
    pub fn register(&self, registration: TokenRegistration) -> String {
        let token = registration.token.unwrap_or_else(|| self.issue());
        let mut devices = self.devices.write();
        let device = devices.entry(token_hash(token.as_bytes())).or_default();
        // The map is held for writing: no other lock is needed.
        let device = device.get_mut();
        device.topic = registration.topic;
        device.ended = None;
        device.replaced_by = None;
        // The count lies outside the lock: under load there are usually no devices, and a request then takes no lock.
        self.registered.store(devices.len() as u64, Ordering::Relaxed);
        token
    }

    /// Expires a token from an instant on (milliseconds since 1970, default now). Returns false if it is unknown.
    pub fn expire(&self, token: &str, since_ms: Option<u64>) -> bool {
        self.end(token, since_ms, TokenEnd::Unregistered)
    }

    /// Does the same for a token that ended in this way.
    pub fn end(&self, token: &str, since_ms: Option<u64>, end: TokenEnd) -> bool {
        let since_ms = since_ms.unwrap_or_else(now_ms);
        self.with(token_hash(token.as_bytes()), |device| device.ended = Some((since_ms, end))).is_some()
    }

    /// Registers a device under another token (a new one if absent). The old token keeps working, and GCM reports the new one to senders.
    /// Returns the new token, or `None` when the old one is unknown.
    pub fn replace(&self, token: &str, registration: TokenRegistration) -> Option<String> {
        let hash = token_hash(token.as_bytes());
        // Looked up before a token is issued: an unknown device must not leave one behind.
        self.with(hash, |_| ())?;
        let new = self.register(registration);
        // A token that replaced itself would be a circle.
        if new != token {
            self.with(hash, |device| device.replaced_by = Some(new.clone()));
        }
        Some(new)
    }

    /// Returns the token that has replaced one, however often it was replaced.
    pub(crate) fn replacement(&self, hash: u64) -> Option<String> {
        let next = |hash| self.with(hash, |device| device.replaced_by.clone()).flatten();
        let mut newest = next(hash)?;
        // Devices that replace each other in a circle would lead nowhere.
        for _ in 1..MAX_REPLACEMENTS {
            match next(token_hash(newest.as_bytes())) {
                Some(newer) => newest = newer,
                None => break,
            }
        }
        Some(newest)
    }

    /// Connects a device. It receives its stored messages first, then new ones as they arrive. Returns `None` when the device is unknown.
    ///
    /// A device has one listener: a new one ends the previous one.
    pub fn listen(&self, token: &str) -> Option<UnboundedReceiver<DeviceMessage>> {
        self.with(token_hash(token.as_bytes()), |device| device.mailbox.connect(now_ms()))
    }

    /// Subscribes to all messages accepted from now on, for any token. A new follower replaces the previous one. Only FCM reports them; a
    /// message to a topic or condition is reported once per member.
    pub fn follow(&self) -> UnboundedReceiver<FollowedMessage> {
        let (sender, receiver) = unbounded_channel();
        *self.follower.write() = Some(sender);
        receiver
    }

    /// Keeps the latest accepted messages from now on, up to this number; 0 keeps none.
    pub(crate) fn keep_messages(&self, capacity: usize) {
        if capacity > 0 {
            self.messages.get_or_init(|| MessageLog::new(capacity));
        }
    }

    pub(crate) fn keeps_messages(&self) -> bool {
        self.messages.get().is_some()
    }

    /// Returns the kept messages behind a number. Waits for one if there is none yet. Returns `None` when no messages are kept.
    pub(crate) async fn messages_behind(&self, number: u64, wait: Duration) -> Option<MessagePage> {
        Some(self.messages.get()?.behind(number, wait).await)
    }

    pub(crate) fn forget_messages(&self) {
        if let Some(messages) = self.messages.get() {
            messages.clear();
        }
    }

    pub(crate) fn is_followed(&self) -> bool {
        self.follower.read().is_some()
    }

    pub(crate) fn is_registered(&self, hash: u64) -> bool {
        self.registered.load(Ordering::Relaxed) > 0 && self.with(hash, |_| ()).is_some()
    }

    /// Returns true if the device listens at this moment.
    pub(crate) fn is_connected(&self, hash: u64) -> bool {
        self.with(hash, |device| device.mailbox.is_connected()).unwrap_or(false)
    }

    pub(crate) fn state(&self, hash: u64, topic: &str) -> DeviceState {
        if self.registered.load(Ordering::Relaxed) == 0 {
            return DeviceState::Unknown;
        }
        let state = self.with(hash, |device| match (device.ended, &device.topic) {
            (Some((since_ms, end)), _) => DeviceState::Expired { since_ms, end },
            // APNs passes a topic, WNS a client; other services, and senders without a name, pass an empty one.
            (None, Some(own)) if !topic.is_empty() && own != topic => DeviceState::OtherTopic,
            _ => DeviceState::Live,
        });
        state.unwrap_or(DeviceState::Unknown)
    }

    pub(crate) fn deliver(&self, delivery: Delivery) {
        let Delivery { devices, tokens, target, message, storage } = delivery;
        if let Some(follower) = &*self.follower.read() {
            for token in tokens {
                let _nobody_follows_any_more =
                    follower.send(FollowedMessage { token, message: message.clone() });
            }
        }
        if let Some((messages, target)) = self.messages.get().zip(target) {
            messages.add(target, message.clone());
        }
        let now_ms = now_ms();
        for hash in devices {
            self.with(hash, |device| device.mailbox.put(&message, &storage, now_ms));
        }
    }

    fn with<R>(&self, hash: u64, act: impl FnOnce(&mut EmulatedDevice) -> R) -> Option<R> {
        // The map is only read and each device has its own lock: deliveries to different devices do not wait for each other.
        let devices = self.devices.read();
        let mut device: MutexGuard<'_, EmulatedDevice> = devices.get(&hash)?.lock();
        Some(act(&mut device))
    }

    fn issue(&self) -> String {
        // A token follows from the seed and its number: a run can be repeated.
        let number = self.issued.fetch_add(1, Ordering::Relaxed);
        let start = mix(self.seed ^ mix(number));
        let bytes: Vec<u8> = (0..16_u64).flat_map(|word| mix(start ^ mix(word)).to_le_bytes()).collect();
        match self.kind {
            TokenKind::Hex64 => bytes[..32].iter().map(|byte| format!("{byte:02x}")).collect(),
            TokenKind::Installation => {
                let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
                // Tokens of FCM begin so behind the colon, with 140 characters in all.
                format!("{}:APA91b{}", &text(&bytes[..17])[..22], &text(&bytes[17..118])[..134])
            }
            TokenKind::Path => URL_SAFE_NO_PAD.encode(&bytes[..32]),
            // Tokens of WNS begin so.
            TokenKind::Base64 => format!("AwYAAAB{}", STANDARD.encode(&bytes[..96])),
        }
    }
}
