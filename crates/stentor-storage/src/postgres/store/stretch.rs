//! A stretch of the devices of an app at a provider, as one read walks over it.

use stentor_core::id::DeviceId;

use super::app_providers::Fleet;

/// Rows walked over in one read, whether or not they lead to a device.
pub(super) const WALKED_MAX_COUNT: usize = 32_768;

/// A stretch of a fleet: after one device, up to another, at most so many.
#[derive(Clone, Copy)]
pub(super) struct FleetStretch {
    pub(super) fleet: Fleet,
    pub(super) after: DeviceId,
    pub(super) as_of: DeviceId,
    pub(super) max: usize,
}

impl FleetStretch {
    /// Returns the key after which it begins, and the last key.
    pub(super) fn bounds(self) -> (i64, i64) {
        (self.fleet.bound(self.after), self.fleet.bound(self.as_of))
    }
}
