//! The Windows Push Notification Services, with the token endpoints of Entra ID and of its predecessor on the same port.

mod channels;
mod control;
mod entra;
mod errors;
mod headers;
mod server;

use crate::config::{EmulatorConfig, VendorOptions, VendorTraits};
use crate::control::{Control, Running};
use crate::device::TokenKind;
use crate::error::EmulatorError;
use crate::listener::Protocols;
pub use channels::{ChannelRequest, WnsChannel};
pub use entra::WnsClient;
use serde::{Deserialize, Serialize};
use server::WnsService;
use std::sync::Arc;

const MAX_HEADER_LIST_BYTES: u32 = 16 * 1024;
/// The lifetime of an access token in Microsoft's example.
const TOKEN_LIFE_S: u64 = 86_399;

/// The configuration of a WNS emulator.
pub type WnsConfig = EmulatorConfig<WnsOptions>;

/// Options specific to WNS.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct WnsOptions {
    /// The clients that exist; any with any secret when empty.
    pub clients: Vec<WnsClient>,
    /// Requires an access token of this emulator for sending.
    pub require_token: bool,
    /// The lifetime of an access token, in seconds.
    pub token_life_s: u64,
    /// The origin of the channel URIs that are issued here, such as `https://localhost:8443`; that of the port if absent.
    pub origin: Option<String>,
}

impl Default for WnsOptions {
    fn default() -> Self {
        Self { clients: Vec::new(), require_token: true, token_life_s: TOKEN_LIFE_S, origin: None }
    }
}

impl VendorOptions for WnsOptions {
    const MAX_CONCURRENT_STREAMS: u32 = 100;
}

/// A WNS emulator.
pub struct WnsEmulator;

/// A running WNS emulator; it stops when this is dropped.
pub struct RunningWns {
    /// The parts common to all emulators: counts, policy, faults, devices.
    pub running: Running,
    service: Arc<WnsService>,
}

impl WnsEmulator {
    /// Starts the emulator on the current runtime. Fails when a port, file or policy cannot be used.
    pub async fn start(config: WnsConfig) -> Result<RunningWns, EmulatorError> {
        // The ports take ownership of the service: a handle is kept for channels.
        let mut built = None;
        let building = |config| {
            let (control, service) = build(config)?;
            built = Some(Arc::clone(&service));
            Ok((control, service))
        };
        let running = config.start(Protocols::Http2And1, building).await?;
        let service = built.ok_or_else(|| EmulatorError::Policy("not built".to_owned()))?;
        Ok(RunningWns { running, service })
    }
}

impl RunningWns {
    /// Opens a channel to a device and returns its address.
    pub fn open_channel(&self, request: ChannelRequest) -> WnsChannel {
        self.service.channels.open(request)
    }
}

/// Builds the emulator without its ports.
pub(crate) fn build(config: WnsConfig) -> Result<(Control, Arc<WnsService>), EmulatorError> {
    let (control, context, devices) = config.parts(VendorTraits {
        token_kind: TokenKind::Base64,
        max_header_list_bytes: MAX_HEADER_LIST_BYTES,
        dialect: errors::DIALECT,
    })?;
    let service = Arc::new(WnsService::new(config, context, devices));
    Ok((control.with_routes(Arc::clone(&service) as _), service))
}
