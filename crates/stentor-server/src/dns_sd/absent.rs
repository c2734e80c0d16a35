//! The refusals of a build without multicast DNS.

use std::time::Duration;

use super::{AnnouncedAddress, DnsSdError};

/// An announcement; this build cannot create one.
pub struct Announcement(());

impl Announcement {
    /// Returns the error that names the missing feature.
    pub fn begin(_server: &AnnouncedAddress, _document: &str) -> Result<Self, DnsSdError> {
        Err(absent())
    }
}

/// Returns the error that names the missing feature.
pub fn search(_span: Duration) -> Result<Vec<AnnouncedAddress>, DnsSdError> {
    Err(absent())
}

fn absent() -> DnsSdError {
    DnsSdError("this program is built without it: build it with `--features mdns`".to_owned())
}
