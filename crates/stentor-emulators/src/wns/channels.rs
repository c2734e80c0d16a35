//! The channels of devices: a URI whose query has the token.

use crate::device::{Devices, TokenRegistration};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

/// A request for a channel.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChannelRequest {
    /// The token to use, decoded; a new one is issued if absent.
    pub token: Option<String>,
    /// The only client that may send; any if absent.
    pub client_id: Option<String>,
}

/// A channel to a device.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WnsChannel {
    /// The token, decoded. Counts, policies and the control port know the device by it.
    pub token: String,
    /// The address to which notifications are sent; the token is percent-encoded in it.
    pub uri: String,
}

/// Shows no token.
impl std::fmt::Debug for ChannelRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ChannelRequest").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

/// Shows no token.
impl std::fmt::Debug for WnsChannel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("WnsChannel").finish_non_exhaustive()
    }
}

/// All channels.
pub(super) struct Channels {
    scheme: &'static str,
    origin: Option<String>,
    address: OnceLock<SocketAddr>,
    devices: Arc<Devices>,
}

impl Channels {
    pub(super) fn new(scheme: &'static str, origin: Option<String>, devices: Arc<Devices>) -> Self {
        let origin = origin.map(|origin| origin.trim_end_matches('/').to_owned());
        Self { scheme, origin, address: OnceLock::new(), devices }
    }

    /// Sets the address of the port, the default origin of channels.
    pub(super) fn set_address(&self, address: SocketAddr) {
        // A port is opened once.
        let _ = self.address.set(address);
    }

    /// Opens a channel to a device.
    pub(super) fn open(&self, request: ChannelRequest) -> WnsChannel {
        // A device keeps one name that messages must bear: a client here, a topic at APNs.
        let registration = TokenRegistration { token: request.token, topic: request.client_id };
        let token = self.devices.register(registration);
        let uri = format!("{}/?token={}", self.origin(), percent_encode(&token));
        WnsChannel { token, uri }
    }

    fn origin(&self) -> String {
        match (&self.origin, self.address.get()) {
            (Some(origin), _) => origin.clone(),
            (None, Some(address)) => format!("{}://{address}", self.scheme),
            (None, None) => format!("{}://localhost", self.scheme),
        }
    }
}

/// Encodes all but letters and digits, with small letters, as channel URIs are written.
fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02x}"));
        }
    }
    encoded
}
