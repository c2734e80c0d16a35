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

use crate::config::{EmulatorConfig, VendorOptions, VendorTraits};
use crate::control::{Control, Running};
use crate::device::TokenKind;
use crate::error::EmulatorError;
use crate::listener::Protocols;
use crate::service::EmulatedService;
pub(crate) use condition::FcmCondition;
pub(crate) use message::{is_token, is_topic};
pub use oauth::{FcmAuth, ServiceAccount};
pub(crate) use oauth::{parse_form, percent_decode};
use serde::{Deserialize, Serialize};
use server::FcmService;
use std::sync::Arc;
pub(crate) use topics::{Query, Topics};

const MAX_HEADER_LIST_BYTES: u32 = 16 * 1024;

/// The configuration of an FCM emulator.
pub type FcmConfig = EmulatorConfig<FcmOptions>;

/// Options specific to FCM.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FcmOptions {
    /// The project ids (or numbers) that exist; any when empty.
    pub projects: Vec<String>,
    /// Authentication of senders.
    pub auth: FcmAuth,
}

impl VendorOptions for FcmOptions {
    const MAX_CONCURRENT_STREAMS: u32 = 100;
}

/// An FCM emulator.
pub struct FcmEmulator;

/// A running FCM emulator; it stops when this is dropped.
pub type RunningFcm = Running;

impl FcmEmulator {
    /// Starts the emulator on the current runtime. Fails when a port, file, key or policy cannot be used.
    pub async fn start(config: FcmConfig) -> Result<RunningFcm, EmulatorError> {
        config.start(Protocols::Http2And1, build).await
    }
}

/// Builds the emulator without its ports.
pub(crate) fn build(config: FcmConfig) -> Result<(Control, Arc<impl EmulatedService>), EmulatorError> {
    let (control, context, devices) = config.parts(VendorTraits {
        token_kind: TokenKind::Installation,
        max_header_list_bytes: MAX_HEADER_LIST_BYTES,
        dialect: errors::DIALECT,
    })?;
    Ok((control, Arc::new(FcmService::new(config, context, devices)?)))
}
