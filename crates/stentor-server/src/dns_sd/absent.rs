//! The refusals of a build without multicast DNS.

use std::time::Duration;

use super::AnnouncedAddress;

/// The reason of every refusal.
#[derive(Debug, thiserror::Error)]
#[error("this program is built without multicast DNS: build it with `--features mdns`")]
pub struct DnsSdError;

/// An announcement, of which this build has none.
pub struct Announcement(());

impl Announcement {
    /// Refuses.
    pub fn begin(_server: &AnnouncedAddress, _document: &str) -> Result<Self, DnsSdError> {
        Err(DnsSdError)
    }
}

/// Refuses.
pub fn search(_span: Duration) -> Result<Vec<AnnouncedAddress>, DnsSdError> {
    Err(DnsSdError)
}
