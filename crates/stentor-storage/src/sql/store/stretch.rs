//! A stretch of the devices of an app at a provider, as one read walks over it.

use stentor_core::id::DeviceId;

use super::app_providers::AppProvider;

/// Rows walked over in one read, whether or not they lead to a device.
pub(crate) const WALKED_MAX_COUNT: usize = 32_768;

/// A stretch of a fleet: a limited number of devices after one device and up to another.
#[derive(Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) fleet: AppProvider,
    pub(crate) after: DeviceId,
    pub(crate) as_of: DeviceId,
    pub(crate) max: usize,
}

impl Stretch {
    /// Returns the key after which it begins, and the last key.
    pub(crate) fn bounds(self) -> (i64, i64) {
        (self.fleet.bound(self.after), self.fleet.bound(self.as_of))
    }
}
