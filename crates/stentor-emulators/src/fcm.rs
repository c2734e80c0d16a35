//! Firebase Cloud Messaging (HTTP v1), with the token endpoint and both topic interfaces.

mod answers;
mod beside;
mod condition;
mod errors;
mod message;
mod new_account;
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
use new_account::NewAccount;
pub use oauth::{FcmAuth, ServiceAccount};
pub(crate) use oauth::{parse_form, percent_decode};
use serde::{Deserialize, Serialize};
use server::FcmService;
use std::path::PathBuf;
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
    /// The file of a service account that the emulator makes; none if absent. Only it and `auth.accounts` are then known.
    pub credential: Option<PathBuf>,
    /// The latest accepted messages that the control port shows; 0 keeps none.
    pub keep_messages: usize,
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
    pub async fn start(mut config: FcmConfig) -> Result<RunningFcm, EmulatorError> {
        let own = &mut config.vendor;
        let made = own.credential.clone().map(|file| NewAccount::make(file, &own.projects)).transpose()?;
        own.auth.accounts.extend(made.as_ref().map(NewAccount::known));
        let mut running = config.start(Protocols::Http2And1, build).await?;
        if let Some(account) = made {
            let written = account.write(&running.url())?;
            running.announce(written);
        }
        Ok(running)
    }
}

/// Builds the emulator without its ports.
pub(crate) fn build(config: FcmConfig) -> Result<(Control, Arc<impl EmulatedService>), EmulatorError> {
    let (control, context, devices) = config.parts(VendorTraits {
        token_kind: TokenKind::Installation,
        max_header_list_bytes: MAX_HEADER_LIST_BYTES,
        dialect: errors::DIALECT,
    })?;
    devices.keep_messages(config.vendor.keep_messages);
    Ok((control, Arc::new(FcmService::new(config, context, devices)?)))
}
