//! Google Cloud Messaging and the legacy HTTP API of FCM, as they were until 2024: three paths, JSON and plain text,
//! with device groups and the topics of the instance id service.

mod answers;
mod backend;
mod errors;
mod form;
mod groups;
mod message;
mod request;
mod server;

use crate::config::{EmulatorConfig, VendorOptions, VendorTraits};
use crate::control::{Control, Running};
use crate::device::TokenKind;
use crate::error::EmulatorError;
use crate::listener::Protocols;
use crate::service::EmulatedService;
pub(crate) use backend::{GcmBackend, GcmJudge, GcmVerdict};
pub(crate) use message::{GcmAddress, GcmMessage, GcmRefusal, switch, text};
use serde::{Deserialize, Serialize};
use server::GcmService;
use std::sync::Arc;

const MAX_HEADER_LIST_BYTES: u32 = 16 * 1024;

/// The configuration of a GCM emulator.
pub type GcmConfig = EmulatorConfig<GcmOptions>;

/// Options specific to GCM.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GcmOptions {
    /// The API keys that exist; any when empty.
    pub keys: Vec<String>,
    /// Bytes that are charged for a message beside the keys and values of its data. A study's figures suggest 34.
    pub data_overhead_bytes: usize,
}

/// Shows the number of keys, never a key.
impl std::fmt::Debug for GcmOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("GcmOptions");
        shown.field("keys", &self.keys.len()).field("data_overhead_bytes", &self.data_overhead_bytes);
        shown.finish()
    }
}

impl VendorOptions for GcmOptions {
    const MAX_CONCURRENT_STREAMS: u32 = 100;
}

/// A GCM emulator.
pub struct GcmEmulator;

/// A running GCM emulator; it stops when this is dropped.
pub type RunningGcm = Running;

impl GcmEmulator {
    /// Starts the emulator on the current runtime. Fails when a port, file or policy cannot be used.
    pub async fn start(config: GcmConfig) -> Result<RunningGcm, EmulatorError> {
        config.start(Protocols::Http2And1, build).await
    }
}

/// Builds the emulator without its ports.
pub(crate) fn build(config: GcmConfig) -> Result<(Control, Arc<impl EmulatedService>), EmulatorError> {
    let (control, context, devices) = config.parts(VendorTraits {
        token_kind: TokenKind::Installation,
        max_header_list_bytes: MAX_HEADER_LIST_BYTES,
        dialect: errors::DIALECT,
    })?;
    Ok((control, Arc::new(GcmService::new(config, context, devices))))
}
