//! The Apple Push Notification service, as its documentation describes it to senders.

mod headers;
mod policy;
mod provider_token;
mod server;

use crate::control::{Control, Running};
use crate::device::{Devices, TokenKind};
use crate::error::EmulatorError;
use crate::frames::ConnectionLimits;
use crate::listener::Protocols;
use crate::observer::{Observer, ObserverConfig};
use crate::policy::{LivePolicy, Policy};
use crate::service::{EmulatedService, EmulatorContext};
use crate::tls::{self, TlsConfig};
pub use provider_token::ApnsKey;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use server::ApnsService;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

const MAX_HEADER_LIST_BYTES: u32 = 8000;

/// How an APNs emulator is started. Every field has a default that accepts any well-formed request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApnsConfig {
    /// Where to listen; port 0 takes any free port.
    pub listen: SocketAddr,
    /// Where the control and device endpoints listen, in plain HTTP; none without it.
    pub control: Option<SocketAddr>,
    /// TLS for the APNs port.
    pub tls: TlsConfig,
    /// What is answered.
    pub policy: Policy,
    /// Where requests are counted.
    pub observer: ObserverConfig,
    /// Makes chance repeatable.
    pub seed: u64,
    /// The signing keys that are known; when empty, any well-formed provider token is taken unverified.
    pub keys: Vec<ApnsKey>,
    /// Whether requests need a provider token.
    pub require_token: bool,
    /// The bundle ids that may be written to; any when empty.
    pub topics: Vec<String>,
    /// The limit announced in SETTINGS, per connection.
    pub max_concurrent_streams: u32,
    /// Means nothing: settings files from when there were two engines may hold it.
    #[serde(skip_serializing)]
    pub engine: IgnoredAny,
    /// Whether answers carry `apns-unique-id`, as the sandbox does.
    pub sandbox: bool,
    /// Whether device tokens must have been issued here; others are `BadDeviceToken`.
    pub strict_tokens: bool,
    /// How soon a connection may change its provider token, in seconds.
    pub min_token_renewal_s: u64,
    /// Whether a connection that used an expired provider token answers nothing any more.
    pub wedge_on_expired_token: bool,
}

impl Default for ApnsConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            control: None,
            tls: TlsConfig::default(),
            policy: Policy::default(),
            observer: ObserverConfig::default(),
            seed: 1,
            keys: Vec::new(),
            require_token: true,
            topics: Vec::new(),
            max_concurrent_streams: 1000,
            engine: IgnoredAny,
            sandbox: false,
            strict_tokens: false,
            min_token_renewal_s: 20 * 60,
            wedge_on_expired_token: false,
        }
    }
}

/// An APNs emulator.
pub struct ApnsEmulator;

/// A running APNs emulator; it stops when this is dropped.
pub type RunningApns = Running;

impl ApnsEmulator {
    /// Starts the emulator on the current runtime. Fails when a port, file, key or policy cannot be used.
    pub async fn start(config: ApnsConfig) -> Result<RunningApns, EmulatorError> {
        let tls = tls::server(&config.tls, Protocols::Http2.alpn())?;
        let (listen, control_address) = (config.listen, config.control);
        let (control, service) = build(config)?;
        Running::start(control, control_address, listen, tls, Protocols::Http2, service).await
    }
}

/// Builds the emulator without its ports.
pub(crate) fn build(config: ApnsConfig) -> Result<(Control, Arc<impl EmulatedService>), EmulatorError> {
    let devices = Arc::new(Devices::new(TokenKind::Hex64, config.seed));
    let limits = ConnectionLimits {
        max_concurrent_streams: config.max_concurrent_streams,
        max_header_list_bytes: MAX_HEADER_LIST_BYTES,
    };
    let policy = LivePolicy::new(config.policy.clone(), config.seed, policy::DIALECT)?;
    let context = EmulatorContext::new(policy, Some(Observer::open(&config.observer)?), limits);
    let control = Control::new(Arc::clone(&context), Arc::clone(&devices));
    Ok((control, Arc::new(ApnsService::new(config, context, devices)?)))
}
