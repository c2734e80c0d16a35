//! Groups: fixed sets of users and devices.

use crate::id::{AppId, DeviceId};
use crate::name::{ExternalId, GroupName};
use crate::time::Timestamp;

/// One member: a person with all devices, or one device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Member {
    /// All present and later devices of the person.
    User(ExternalId),
    /// Just this device.
    Device(DeviceId),
}

/// A fixed set of users or devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The owning app.
    pub app: AppId,
    /// The app's name for it.
    pub name: GroupName,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Number of members.
    pub member_count: u64,
}
