//! The connection server of GCM and FCM: app servers stay connected by XMPP, send to devices and receive from them.

mod app_servers;
mod control;
mod downstream;
mod errors;
mod iq;
mod login;
mod serve;
mod session;
mod stanza;
mod upstream;
mod xml;

use crate::config::{EmulatorConfig, VendorOptions, VendorTraits};
use crate::control::{Control, Running};
use crate::device::TokenKind;
use crate::error::EmulatorError;
use crate::gcm::GcmBackend;
use crate::listener::Protocols;
pub use app_servers::AppServerConnection;
use app_servers::AppServers;
use serde::{Deserialize, Serialize};
pub(crate) use session::CcsSession;
use std::collections::BTreeMap;
use std::sync::Arc;
use upstream::UpstreamQueue;
pub use upstream::{InjectedMessage, UpstreamRefusal, UpstreamTotals};

/// The default limit of pending messages, in each direction of a connection.
const MAX_IN_FLIGHT: u32 = 100;

/// The configuration of a CCS emulator. `max_concurrent_streams` limits the pending messages of an app server.
pub type CcsConfig = EmulatorConfig<CcsOptions>;

/// The two generations of the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CcsGeneration {
    /// Google Cloud Messaging, `gcm.googleapis.com`; 1,000 connections of a sender.
    #[default]
    Gcm,
    /// Firebase Cloud Messaging, `fcm.googleapis.com`; 2,500 connections of a sender.
    Fcm,
}

impl CcsGeneration {
    /// Returns the domain of addresses.
    pub(crate) fn domain(self) -> &'static str {
        match self {
            Self::Gcm => "gcm.googleapis.com",
            Self::Fcm => "fcm.googleapis.com",
        }
    }

    fn max_connections(self) -> usize {
        match self {
            Self::Gcm => 1000,
            Self::Fcm => 2500,
        }
    }
}

/// Options specific to CCS.
#[derive(Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct CcsOptions {
    /// The generation of the service to emulate.
    pub generation: CcsGeneration,
    /// The sender ids that exist, each with its keys; any sender with any key when empty.
    pub senders: BTreeMap<String, Vec<String>>,
    /// The maximum number of connections per sender; the limit of the generation if absent.
    pub max_connections: Option<usize>,
    /// The maximum number of unacknowledged messages from devices per connection.
    pub max_upstream_in_flight: u32,
    /// The package named by receipts and messages from devices, unless they name another one.
    pub package: String,
    /// Bytes that are charged for a message beside the keys and values of its data. A study's figures suggest 34.
    pub data_overhead_bytes: usize,
}

impl Default for CcsOptions {
    fn default() -> Self {
        Self {
            generation: CcsGeneration::default(),
            senders: BTreeMap::new(),
            max_connections: None,
            max_upstream_in_flight: MAX_IN_FLIGHT,
            package: "org.example.emulated".to_owned(),
            data_overhead_bytes: 0,
        }
    }
}

/// Shows the senders, never a key.
impl std::fmt::Debug for CcsOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("CcsOptions");
        shown.field("generation", &self.generation).field("senders", &self.senders.keys());
        shown.finish_non_exhaustive()
    }
}

impl VendorOptions for CcsOptions {
    const MAX_CONCURRENT_STREAMS: u32 = MAX_IN_FLIGHT;
}

/// A CCS emulator.
pub struct CcsEmulator;

/// A running CCS emulator; it stops when this is dropped.
pub struct RunningCcs {
    /// The parts common to all emulators: counts, policy, faults, devices.
    pub running: Running,
    service: Arc<CcsService>,
}

impl CcsEmulator {
    /// Starts the emulator on the current runtime. Fails when a port, file or policy cannot be used.
    pub async fn start(config: CcsConfig) -> Result<RunningCcs, EmulatorError> {
        // The ports take ownership of the service: a handle is kept for upstream messages.
        let mut built = None;
        let building = |config| {
            let (control, service) = build(config)?;
            built = Some(Arc::clone(&service));
            Ok((control, service))
        };
        let running = config.start_handling(Protocols::Xmpp, building).await?;
        let service = built.ok_or_else(|| EmulatorError::Policy("not built".to_owned()))?;
        Ok(RunningCcs { running, service })
    }
}

impl RunningCcs {
    /// Sends a message from a device to an app server. Returns its id. Fails when too many messages wait already.
    pub fn upstream(&self, message: InjectedMessage) -> Result<String, UpstreamRefusal> {
        self.service.send_upstream(message)
    }

    /// Returns the counts of all messages and receipts for app servers.
    pub fn upstream_totals(&self) -> UpstreamTotals {
        self.service.upstream.totals()
    }

    /// Returns the connections of app servers that have logged in.
    pub fn connections(&self) -> Vec<AppServerConnection> {
        self.service.app_servers.list()
    }
}

/// The connection server with everything it needs.
pub(crate) struct CcsService {
    backend: GcmBackend,
    options: CcsOptions,
    upstream: UpstreamQueue,
    app_servers: AppServers,
}

/// Reads a stream in pieces and describes its events. Fails with a description of the first error.
pub(crate) fn stream_in_pieces(bytes: &[u8], piece_bytes: usize) -> Result<String, String> {
    let (mut reader, mut events) = (xml::StreamReader::new(), String::new());
    // `chunks` panics at a size of zero.
    for piece in bytes.chunks(piece_bytes.max(1)) {
        let mut rest = piece;
        while let Some(event) = reader.read(&mut rest).map_err(|fault| format!("{fault:?} after {events}"))? {
            events.push_str(&format!("{event:?}\n"));
        }
    }
    Ok(events)
}

/// Builds the emulator without its ports.
pub(crate) fn build(config: CcsConfig) -> Result<(Control, Arc<CcsService>), EmulatorError> {
    let (control, context, devices) = config.parts(VendorTraits {
        token_kind: TokenKind::Installation,
        max_header_list_bytes: 0,
        dialect: errors::DIALECT,
    })?;
    let options = config.vendor;
    let max_connections = options.max_connections.unwrap_or(options.generation.max_connections());
    let service = Arc::new(CcsService {
        backend: GcmBackend::new(context, devices, config.strict_tokens, config.seed),
        options,
        upstream: UpstreamQueue::default(),
        app_servers: AppServers::new(max_connections),
    });
    Ok((control.with_routes(Arc::clone(&service) as _), service))
}
