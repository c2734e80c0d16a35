//! The Apple Push Notification service, as its documentation describes it to senders.

mod broadcast;
mod channels;
mod control;
mod headers;
mod management;
mod new_key;
mod policy;
mod provider_token;
mod server;

use crate::config::{EmulatorConfig, VendorOptions, VendorTraits};
use crate::control::{Control, Running};
use crate::device::TokenKind;
use crate::error::EmulatorError;
use crate::listener::Protocols;
use crate::service::Served;
use management::ChannelManagement;
use new_key::NewKey;
pub use provider_token::ApnsKey;
use serde::{Deserialize, Serialize};
use server::ApnsService;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

const MAX_HEADER_LIST_BYTES: u32 = 8000;

/// The configuration of an APNs emulator.
pub type ApnsConfig = EmulatorConfig<ApnsOptions>;

/// Options specific to APNs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct ApnsOptions {
    /// The signing keys that are known; when empty, any well-formed provider token is taken unverified.
    pub keys: Vec<ApnsKey>,
    /// Requires a provider token on every request.
    pub require_token: bool,
    /// The address of the port that manages broadcast channels; none if absent. It has the certificate of the push port.
    pub management: Option<SocketAddr>,
    /// The channels that an app may have.
    pub max_channels: usize,
    /// The bundle ids that may be written to; any when empty.
    pub topics: Vec<String>,
    /// Adds `apns-unique-id` to responses, as the sandbox does.
    pub sandbox: bool,
    /// The minimum interval between two changes of a connection's provider token, in seconds.
    pub min_token_renewal_s: u64,
    /// Stops responding on a connection that used an expired provider token.
    pub wedge_on_expired_token: bool,
    /// The file of a signing key that the emulator makes; none if absent. Only it and `keys` are then known.
    pub credential: Option<PathBuf>,
    /// The latest accepted messages that the control port shows; 0 keeps none.
    pub keep_messages: usize,
}

impl Default for ApnsOptions {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            require_token: true,
            management: None,
            max_channels: channels::MAX_CHANNELS_PER_APP,
            topics: Vec::new(),
            sandbox: false,
            min_token_renewal_s: 20 * 60,
            wedge_on_expired_token: false,
            credential: None,
            keep_messages: 0,
        }
    }
}

impl VendorOptions for ApnsOptions {
    const MAX_CONCURRENT_STREAMS: u32 = 1000;
}

/// An APNs emulator.
pub struct ApnsEmulator;

/// A running APNs emulator; it stops when this is dropped.
pub type RunningApns = Running;

impl ApnsEmulator {
    /// Starts the emulator on the current runtime. Fails when a port, file, key or policy cannot be used.
    pub async fn start(mut config: ApnsConfig) -> Result<RunningApns, EmulatorError> {
        let made = config.vendor.credential.clone().map(NewKey::make).transpose()?;
        config.vendor.keys.extend(made.as_ref().map(NewKey::known));
        let management = config.vendor.management;
        // The ports take ownership of the service: a handle is kept for the second one.
        let mut built = None;
        let building = |config| {
            let (control, service) = build(config)?;
            built = Some(Arc::clone(&service));
            Ok((control, service))
        };
        let mut running = config.start(Protocols::Http2, building).await?;
        if let Some((address, service)) = management.zip(built) {
            running.open_management(address, Arc::new(Served(channel_management(service)))).await?;
        }
        if let Some(key) = made {
            running.announce(key.write()?);
        }
        Ok(running)
    }
}

/// Builds the emulator without its ports.
pub(crate) fn build(config: ApnsConfig) -> Result<(Control, Arc<ApnsService>), EmulatorError> {
    let (control, context, devices) = config.parts(VendorTraits {
        token_kind: TokenKind::Hex64,
        max_header_list_bytes: MAX_HEADER_LIST_BYTES,
        dialect: policy::DIALECT,
    })?;
    devices.keep_messages(config.vendor.keep_messages);
    let service = Arc::new(ApnsService::new(config, context, devices)?);
    Ok((control.with_routes(Arc::clone(&service) as _), service))
}

/// Builds the service of the port that manages channels.
pub(crate) fn channel_management(service: Arc<ApnsService>) -> Arc<ChannelManagement> {
    Arc::new(ChannelManagement(service))
}
