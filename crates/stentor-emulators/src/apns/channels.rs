//! The broadcast channels of all apps, and the devices that have subscribed to them.

use crate::dice::mix;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::RwLock;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

/// Apple's limit for an app in one environment.
pub(super) const MAX_CHANNELS_PER_APP: usize = 10_000;

/// The message storage policy of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum MessageStorage {
    /// No Message Stored.
    #[default]
    Nothing,
    /// Most Recent Message Stored.
    Newest,
}

impl MessageStorage {
    /// Returns the policy with Apple's number.
    pub(super) fn of_number(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::Nothing),
            1 => Some(Self::Newest),
            _ => None,
        }
    }

    /// Returns Apple's number of this policy.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Nothing => 0,
            Self::Newest => 1,
        }
    }
}

/// All channels, by bundle id and channel id.
pub(super) struct Channels {
    seed: u64,
    max_per_app: usize,
    created: AtomicU64,
    apps: RwLock<HashMap<String, BTreeMap<String, Channel>>>,
}

struct Channel {
    storage: MessageStorage,
    /// The hashes of the tokens of devices.
    subscribers: HashSet<u64>,
}

impl Channels {
    pub(super) fn new(seed: u64, max_per_app: usize) -> Self {
        Self { seed, max_per_app, created: AtomicU64::new(0), apps: RwLock::default() }
    }

    /// Creates a channel and returns its id; `None` if the app has as many as it may have.
    pub(super) fn create(&self, bundle: &str, storage: MessageStorage) -> Option<String> {
        let mut apps = self.apps.write();
        let app = apps.entry(bundle.to_owned()).or_default();
        if app.len() >= self.max_per_app {
            return None;
        }
        let id = self.draw();
        app.insert(id.clone(), Channel { storage, subscribers: HashSet::new() });
        Some(id)
    }

    /// Returns the policy of an app's channel; `None` if the app has no such channel.
    pub(super) fn storage(&self, bundle: &str, id: &str) -> Option<MessageStorage> {
        Some(self.apps.read().get(bundle)?.get(id)?.storage)
    }

    /// Deletes a channel. Returns false if the app has no such channel.
    pub(super) fn delete(&self, bundle: &str, id: &str) -> bool {
        self.apps.write().get_mut(bundle).is_some_and(|app| app.remove(id).is_some())
    }

    /// Returns the ids of an app's channels.
    pub(super) fn list(&self, bundle: &str) -> Vec<String> {
        self.apps.read().get(bundle).into_iter().flat_map(BTreeMap::keys).cloned().collect()
    }

    /// Subscribes a device to a channel of any app. Returns false if there is no such channel.
    pub(super) fn subscribe(&self, id: &str, token_hash: u64) -> bool {
        let mut apps = self.apps.write();
        let channel = apps.values_mut().find_map(|app| app.get_mut(id));
        channel.map(|channel| channel.subscribers.insert(token_hash)).is_some()
    }

    /// Returns the hashes of the devices that have subscribed to a channel.
    pub(super) fn subscribers(&self, bundle: &str, id: &str) -> Vec<u64> {
        let apps = self.apps.read();
        let channel = apps.get(bundle).and_then(|app| app.get(id));
        channel.into_iter().flat_map(|channel| &channel.subscribers).copied().collect()
    }

    /// Draws an id that follows from the seed and its number.
    fn draw(&self) -> String {
        let number = self.created.fetch_add(1, Ordering::Relaxed);
        // `mix` gives each number another value: no id is drawn a second time, not even after its channel was deleted.
        let high = mix(self.seed ^ mix(number));
        STANDARD.encode([high.to_le_bytes(), mix(!high).to_le_bytes()].concat())
    }
}
