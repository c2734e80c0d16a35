//! The subscriptions of devices: the keys of each, and the sender for which it was made.

use super::keys::{AUTH_BYTES, POINT_BYTES, SubscriptionKeys, derive_auth};
use crate::device::{Devices, TokenRegistration};
use crate::error::EmulatorError;
use crate::observer::token_hash;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

/// A request for a subscription.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SubscriptionRequest {
    /// The last part of the endpoint's path; a new one is issued if absent.
    pub token: Option<String>,
    /// The public key of the only sender, in base64url; any sender if absent.
    pub application_server_key: Option<String>,
}

/// A subscription as a browser hands it to an app server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebPushSubscription {
    /// The last part of the endpoint's path. Counts, policies and the control port know the device by it.
    pub token: String,
    /// The address to which messages are sent.
    pub endpoint: String,
    /// The keys for senders.
    pub keys: PublicKeys,
    /// Endpoint and keys in one text, as a device of Stentor registers it.
    pub push_token: String,
}

/// The keys that a browser publishes to the senders of a subscription, in base64url.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicKeys {
    /// The public key for the agreement.
    pub p256dh: String,
    /// The shared secret.
    pub auth: String,
}

/// Shows no token and no key.
impl std::fmt::Debug for SubscriptionRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SubscriptionRequest").finish_non_exhaustive()
    }
}

/// Shows no token and no key.
impl std::fmt::Debug for WebPushSubscription {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("WebPushSubscription").finish_non_exhaustive()
    }
}

/// Shows no key.
impl std::fmt::Debug for PublicKeys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PublicKeys").finish_non_exhaustive()
    }
}

/// All subscriptions of devices.
pub(super) struct Subscriptions {
    seed: u64,
    scheme: &'static str,
    origin: Option<String>,
    address: OnceLock<SocketAddr>,
    devices: Arc<Devices>,
    known: RwLock<HashMap<u64, Arc<Subscribed>>>,
}

/// The secrets of a subscription.
pub(super) struct Subscribed {
    pub(super) keys: SubscriptionKeys,
    pub(super) auth: [u8; AUTH_BYTES],
    /// The public key of the only sender.
    pub(super) sender_key: Option<Vec<u8>>,
}

impl Subscriptions {
    pub(super) fn new(
        seed: u64,
        scheme: &'static str,
        origin: Option<String>,
        devices: Arc<Devices>,
    ) -> Self {
        let origin = origin.map(|origin| origin.trim_end_matches('/').to_owned());
        Self { seed, scheme, origin, address: OnceLock::new(), devices, known: RwLock::default() }
    }

    /// Sets the address of the port, the default origin of endpoints.
    pub(super) fn set_address(&self, address: SocketAddr) {
        // A port is opened once.
        let _ = self.address.set(address);
    }

    /// Returns the configured origin.
    pub(super) fn configured_origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    /// Subscribes a device. One with the same token gets the same keys, also after a restart with the same seed.
    pub(super) fn subscribe(
        &self,
        request: SubscriptionRequest,
    ) -> Result<WebPushSubscription, EmulatorError> {
        let sender_key = request.application_server_key.as_deref().map(read_sender_key).transpose()?;
        let registration = TokenRegistration { token: request.token, topic: None };
        let token = self.devices.register(registration);
        let subscribed = Arc::new(self.derive(&token, sender_key)?);
        self.known.write().insert(token_hash(token.as_bytes()), Arc::clone(&subscribed));
        Ok(self.published(token, &subscribed))
    }

    /// Returns the subscription of a registered device.
    pub(super) fn of(&self, hash: u64, token: &str) -> Option<Arc<Subscribed>> {
        if let Some(subscribed) = self.known.read().get(&hash) {
            return Some(Arc::clone(subscribed));
        }
        // The device was registered without a request for a subscription: its keys follow from its token.
        let subscribed = Arc::new(self.derive(token, None).ok()?);
        Some(Arc::clone(self.known.write().entry(hash).or_insert(subscribed)))
    }

    fn derive(&self, token: &str, sender_key: Option<Vec<u8>>) -> Result<Subscribed, EmulatorError> {
        let keys = SubscriptionKeys::derive(self.seed, token.as_bytes())?;
        Ok(Subscribed { keys, auth: derive_auth(self.seed, token.as_bytes()), sender_key })
    }

    fn published(&self, token: String, subscribed: &Subscribed) -> WebPushSubscription {
        let endpoint = format!("{}/push/{token}", self.origin());
        let p256dh = URL_SAFE_NO_PAD.encode(subscribed.keys.public());
        let auth = URL_SAFE_NO_PAD.encode(subscribed.auth);
        let push_token = push_token(&endpoint, &p256dh, &auth);
        WebPushSubscription { token, endpoint, keys: PublicKeys { p256dh, auth }, push_token }
    }

    fn origin(&self) -> String {
        match (&self.origin, self.address.get()) {
            (Some(origin), _) => origin.clone(),
            (None, Some(address)) => format!("{}://{address}", self.scheme),
            (None, None) => format!("{}://localhost", self.scheme),
        }
    }
}

/// Writes endpoint and keys in one text.
pub(super) fn push_token(endpoint: &str, p256dh: &str, auth: &str) -> String {
    format!("{endpoint}#p256dh={p256dh}&auth={auth}")
}

fn read_sender_key(text: &str) -> Result<Vec<u8>, EmulatorError> {
    let key = URL_SAFE_NO_PAD.decode(text).ok().filter(|key| key.len() == POINT_BYTES);
    key.ok_or_else(|| EmulatorError::PublicKey {
        owner: "the sender".to_owned(),
        reason: "it must be 65 bytes in base64url".to_owned(),
    })
}
