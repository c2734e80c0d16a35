//! Firebase Cloud Messaging (HTTP v1), with the token endpoint and both topic interfaces.

mod answers;
mod beside;
mod condition;
mod errors;
mod message;
mod oauth;
mod server;
#[cfg(test)]
mod tests;
mod topics;

use crate::control::{Control, Running};
use crate::device::{Devices, TokenKind};
use crate::error::EmulatorError;
use crate::frames::ConnectionLimits;
use crate::listener::Protocols;
use crate::observer::{Observer, ObserverConfig};
use crate::policy::{LivePolicy, Policy};
use crate::service::{EmulatedService, EmulatorContext};
use crate::tls::{self, TlsConfig};
pub use oauth::{FcmAuth, ServiceAccount};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use server::FcmService;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

const MAX_HEADER_LIST_BYTES: u32 = 16 * 1024;

/// How an FCM emulator is started. Every field has a default that accepts any well-formed request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FcmConfig {
    /// Where to listen; port 0 takes any free port.
    pub listen: SocketAddr,
    /// Where the control and device endpoints listen, in plain HTTP; none without it.
    pub control: Option<SocketAddr>,
    /// TLS for the FCM port.
    pub tls: TlsConfig,
    /// What is answered.
    pub policy: Policy,
    /// Where requests are counted.
    pub observer: ObserverConfig,
    /// Makes chance repeatable.
    pub seed: u64,
    /// The project ids (or numbers) that exist; any when empty.
    pub projects: Vec<String>,
    /// Who may send.
    pub auth: FcmAuth,
    /// The limit announced in SETTINGS, per connection.
    pub max_concurrent_streams: u32,
    /// Means nothing: settings files from when there were two engines may hold it.
    #[serde(skip_serializing)]
    pub engine: IgnoredAny,
    /// Whether tokens must have been issued here; others are `UNREGISTERED`.
    pub strict_tokens: bool,
}

impl Default for FcmConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            control: None,
            tls: TlsConfig::default(),
            policy: Policy::default(),
            observer: ObserverConfig::default(),
            seed: 1,
            projects: Vec::new(),
            auth: FcmAuth::default(),
            max_concurrent_streams: 100,
            engine: IgnoredAny,
            strict_tokens: false,
        }
    }
}

/// An FCM emulator.
pub struct FcmEmulator;

/// A running FCM emulator; it stops when this is dropped.
pub type RunningFcm = Running;

impl FcmEmulator {
    /// Starts the emulator on the current runtime. Fails when a port, file, key or policy cannot be used.
    pub async fn start(config: FcmConfig) -> Result<RunningFcm, EmulatorError> {
        let tls = tls::server(&config.tls, Protocols::Http2And1.alpn())?;
        let (listen, control_address) = (config.listen, config.control);
        let (control, service) = build(config)?;
        Running::start(control, control_address, listen, tls, Protocols::Http2And1, service).await
    }
}

/// Builds the emulator without its ports.
pub(crate) fn build(config: FcmConfig) -> Result<(Control, Arc<impl EmulatedService>), EmulatorError> {
    let devices = Arc::new(Devices::new(TokenKind::Installation, config.seed));
    let limits = ConnectionLimits {
        max_concurrent_streams: config.max_concurrent_streams,
        max_header_list_bytes: MAX_HEADER_LIST_BYTES,
    };
    let policy = LivePolicy::new(config.policy.clone(), config.seed, errors::DIALECT)?;
    let context = EmulatorContext::new(policy, Some(Observer::open(&config.observer)?), limits);
    let control = Control::new(Arc::clone(&context), Arc::clone(&devices));
    Ok((control, Arc::new(FcmService::new(config, context, devices)?)))
}
