//! A push service of Web Push: requests as in RFC 8030, content as in RFC 8188 and RFC 8291, senders identified as in RFC 8292.

mod content;
mod control;
mod headers;
mod keys;
mod policy;
mod sender_limit;
mod server;
mod subscriptions;
mod synthetic;
#[cfg(test)]
mod tests;
mod vapid;

use crate::config::{EmulatorConfig, VendorOptions, VendorTraits};
use crate::control::{Control, Running};
use crate::device::TokenKind;
use crate::error::EmulatorError;
use crate::listener::Protocols;
use serde::{Deserialize, Serialize};
use server::WebPushService;
use std::sync::Arc;
pub use subscriptions::{PublicKeys, SubscriptionRequest, WebPushSubscription};
pub use synthetic::{SyntheticSubscriptions, synthetic_path, synthetic_token};

const MAX_HEADER_LIST_BYTES: u32 = 16 * 1024;
/// Often enough to notice a wrong key, and so rarely that it costs no campaign its speed.
const DECRYPT_EVERY: u64 = 64;

/// The configuration of a Web Push emulator.
pub type WebPushConfig = EmulatorConfig<WebPushOptions>;

/// Options specific to Web Push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WebPushOptions {
    /// Requires that each request identifies its sender by VAPID. An identity that is presented is verified in any case.
    pub require_vapid: bool,
    /// The origin of the endpoints that are issued here, such as `https://localhost:8443`; that of the port if absent. Tokens for it are
    /// accepted besides those for the authority of the request.
    pub origin: Option<String>,
    /// The messages that a sender's key may send in a minute; any number if absent.
    pub limit_per_minute: Option<u64>,
    /// Decrypts the messages for one in this number of synthetic subscriptions; none if 0.
    pub decrypt_every: u64,
}

impl Default for WebPushOptions {
    fn default() -> Self {
        Self { require_vapid: true, origin: None, limit_per_minute: None, decrypt_every: DECRYPT_EVERY }
    }
}

impl VendorOptions for WebPushOptions {
    const MAX_CONCURRENT_STREAMS: u32 = 100;
}

/// A Web Push emulator.
pub struct WebPushEmulator;

/// A running Web Push emulator; it stops when this is dropped.
pub struct RunningWebPush {
    /// The parts common to all emulators: counts, policy, faults, devices.
    pub running: Running,
    service: Arc<WebPushService>,
}

impl WebPushEmulator {
    /// Starts the emulator on the current runtime. Fails when a port, file, key or policy cannot be used.
    pub async fn start(config: WebPushConfig) -> Result<RunningWebPush, EmulatorError> {
        // The ports take ownership of the service: a handle is kept for subscriptions.
        let mut built = None;
        let building = |config| {
            let (control, service) = build(config)?;
            built = Some(Arc::clone(&service));
            Ok((control, service))
        };
        let running = config.start(Protocols::Http2And1, building).await?;
        let service = built.ok_or_else(|| EmulatorError::Policy("not built".to_owned()))?;
        Ok(RunningWebPush { running, service })
    }
}

impl RunningWebPush {
    /// Subscribes a device and returns what its browser would hand to an app server. Fails when the sender's key is not one.
    pub fn subscribe(&self, request: SubscriptionRequest) -> Result<WebPushSubscription, EmulatorError> {
        self.service.subscriptions.subscribe(request)
    }
}

/// Builds the emulator without its ports.
pub(crate) fn build(config: WebPushConfig) -> Result<(Control, Arc<WebPushService>), EmulatorError> {
    let (control, context, devices) = config.parts(VendorTraits {
        token_kind: TokenKind::Path,
        max_header_list_bytes: MAX_HEADER_LIST_BYTES,
        dialect: policy::DIALECT,
    })?;
    let service = Arc::new(WebPushService::new(config, context, devices)?);
    Ok((control.with_routes(Arc::clone(&service) as _), service))
}
