//! Huawei Push Kit of HMS Core: the token endpoint, and messages by the REST API, by projects (v2) and by clients (v1).

mod answers;
mod errors;
mod message;
mod oauth;
mod server;

use crate::config::{EmulatorConfig, VendorOptions, VendorTraits};
use crate::control::{Control, Running};
use crate::device::TokenKind;
use crate::error::EmulatorError;
use crate::listener::Protocols;
use crate::service::EmulatedService;
pub use oauth::{HmsAuth, HmsClient};
use serde::{Deserialize, Serialize};
use server::HmsService;
use std::sync::Arc;

const MAX_HEADER_LIST_BYTES: u32 = 16 * 1024;

/// The configuration of an HMS emulator.
pub type HmsConfig = EmulatorConfig<HmsOptions>;

/// Options specific to HMS.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HmsOptions {
    /// The project ids that exist; any when empty.
    pub projects: Vec<String>,
    /// Authentication of senders.
    pub auth: HmsAuth,
}

impl VendorOptions for HmsOptions {
    const MAX_CONCURRENT_STREAMS: u32 = 100;
}

/// An HMS emulator.
pub struct HmsEmulator;

/// A running HMS emulator; it stops when this is dropped.
pub type RunningHms = Running;

impl HmsEmulator {
    /// Starts the emulator on the current runtime. Fails when a port, file or policy cannot be used.
    pub async fn start(config: HmsConfig) -> Result<RunningHms, EmulatorError> {
        config.start(Protocols::Http2And1, build).await
    }
}

/// Builds the emulator without its ports.
pub(crate) fn build(config: HmsConfig) -> Result<(Control, Arc<impl EmulatedService>), EmulatorError> {
    let (control, context, devices) = config.parts(VendorTraits {
        token_kind: TokenKind::Installation,
        max_header_list_bytes: MAX_HEADER_LIST_BYTES,
        dialect: errors::DIALECT,
    })?;
    Ok((control, Arc::new(HmsService::new(config, context, devices))))
}
