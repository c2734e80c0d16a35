//! The messages stored for a device that is offline.

use super::DeviceMessage;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const MAX_STORED_MESSAGES: usize = 100;
const MAX_TTL: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The storage of a message for an offline device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// Now or never.
    Never,
    /// It replaces a stored message with the same key.
    Replacing { key: String, until_ms: u64 },
    /// It waits beside the others; too many of these and all are dropped.
    Beside { until_ms: u64 },
}

impl Storage {
    /// Keeps only the newest under a key, until an instant since 1970 (default: as long as possible).
    pub(crate) fn newest(key: &str, until: Option<Duration>) -> Self {
        let longest_ms = crate::clock::now_ms() + MAX_TTL.as_millis() as u64;
        let until_ms = until.map_or(longest_ms, |until| (until.as_millis() as u64).min(longest_ms));
        Self::Replacing { key: key.to_owned(), until_ms }
    }

    fn until_ms(&self) -> u64 {
        match self {
            Self::Never => 0,
            Self::Replacing { until_ms, .. } | Self::Beside { until_ms } => *until_ms,
        }
    }
}

/// The messages of one device: kept while it is away, handed over while it listens.
#[derive(Default)]
pub(super) struct Mailbox {
    listener: Option<UnboundedSender<DeviceMessage>>,
    stored: VecDeque<(Storage, DeviceMessage)>,
}

impl Mailbox {
    pub(super) fn connect(&mut self, now_ms: u64) -> UnboundedReceiver<DeviceMessage> {
        let (sender, receiver) = unbounded_channel();
        for (storage, message) in self.stored.drain(..) {
            if storage.until_ms() > now_ms {
                // The receiver is held here, so this cannot fail.
                let _ = sender.send(message);
            }
        }
        self.listener = Some(sender);
        receiver
    }

    pub(super) fn is_connected(&self) -> bool {
        self.listener.as_ref().is_some_and(|listener| !listener.is_closed())
    }

    pub(super) fn put(&mut self, message: &DeviceMessage, storage: &Storage, now_ms: u64) {
        if let Some(listener) = &self.listener {
            if listener.send(message.clone()).is_ok() {
                return;
            }
            // The listener was dropped: from now on the device is offline.
            self.listener = None;
        }
        if storage.until_ms() > now_ms {
            self.store(message, storage);
        }
    }

    fn store(&mut self, message: &DeviceMessage, storage: &Storage) {
        if let Storage::Replacing { key, .. } = storage {
            // The newer one is appended at the end, not put in the older one's place.
            self.stored.retain(|(other, _)| !matches!(other, Storage::Replacing { key: k, .. } if k == key));
        } else if self.beside() >= MAX_STORED_MESSAGES {
            // FCM drops all messages without a key once a hundred wait and another comes, that one with them.
            self.stored.retain(|(other, _)| matches!(other, Storage::Replacing { .. }));
            return;
        }
        self.stored.push_back((storage.clone(), message.clone()));
    }

    fn beside(&self) -> usize {
        self.stored.iter().filter(|(storage, _)| matches!(storage, Storage::Beside { .. })).count()
    }
}
