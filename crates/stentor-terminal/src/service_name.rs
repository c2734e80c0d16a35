//! The names of push services on the command line.

use crate::failure::CommandFailure;
use clap::ValueEnum;
use stentor_stage::devices::{StagedService, StagedServices};

/// A push service with an emulator
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ServiceName {
    /// Android devices through Firebase Cloud Messaging
    Fcm,
    /// Apple devices through the Apple Push Notification service
    Apns,
    /// Browsers through Web Push
    WebPush,
    /// Windows devices through the Windows Push Notification Services
    Wns,
    /// Android devices through Huawei Push Kit
    Hms,
    /// Android devices through Google Cloud Messaging, the legacy HTTP protocol
    Gcm,
}

impl From<ServiceName> for StagedService {
    fn from(name: ServiceName) -> Self {
        match name {
            ServiceName::Fcm => Self::Fcm,
            ServiceName::Apns => Self::Apns,
            ServiceName::WebPush => Self::WebPush,
            ServiceName::Wns => Self::Wns,
            ServiceName::Hms => Self::Hms,
            ServiceName::Gcm => Self::Gcm,
        }
    }
}

/// Returns the push services of a list; fails if it names one twice, or if they cannot have so many devices.
pub fn staged(names: &[ServiceName], devices: u64) -> anyhow::Result<StagedServices> {
    let named: Vec<StagedService> = names.iter().copied().map(Into::into).collect();
    let staged =
        StagedServices::new(&named).ok_or_else(|| CommandFailure::usage("a push service is named twice"))?;
    if devices > staged.max_devices() {
        let most = staged.max_devices();
        return Err(CommandFailure::usage(format!("these push services take at most {most} devices")).into());
    }
    Ok(staged)
}
