//! In whose name something is taken of what all share: places, bytes, turns.

use std::net::{IpAddr, Ipv4Addr};

use stentor_core::id::{AppId, DeviceId};

/// A network that shares a limit: an IPv4 address, or an IPv6 network of 64 bits, the size of one site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceNetwork {
    /// One address.
    V4(Ipv4Addr),
    /// The first half of an address.
    V6([u16; 4]),
}

/// The owner of a place, of bytes or of a rate. Nothing is taken in nobody's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The operator: the root key.
    Operator,
    /// An app: a key that its servers keep to themselves.
    App(AppId),
    /// A device of an app, which has proved who it is.
    Device(AppId, DeviceId),
    /// A caller from an address with a credential that the app hands to everybody: its join key, a subscription of Web Push.
    Guest(AppId, SourceNetwork),
    /// A caller from an address that has not said, or not proved, who it is.
    Address(SourceNetwork),
}

impl SourceNetwork {
    /// Stands for an address that is not known; all that have none share it.
    pub const UNKNOWN: Self = Self::V4(Ipv4Addr::UNSPECIFIED);
}

impl From<IpAddr> for SourceNetwork {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self::V6([a, b, c, d])
            }
        }
    }
}

impl Owner {
    /// Returns the app whose share it is taken from; none for the operator and the nameless.
    #[must_use]
    pub const fn app(&self) -> Option<AppId> {
        match self {
            Self::App(app) | Self::Device(app, _) | Self::Guest(app, _) => Some(*app),
            Self::Operator | Self::Address(_) => None,
        }
    }

    /// Returns whether it is one of many of its app, each of which has a part of the app's share.
    #[must_use]
    pub const fn is_part_of_app(&self) -> bool {
        matches!(self, Self::Device(..) | Self::Guest(..))
    }
}

impl From<AppId> for Owner {
    fn from(app: AppId) -> Self {
        Self::App(app)
    }
}

/// The app of a key, or the operator, whose key belongs to none.
impl From<Option<AppId>> for Owner {
    fn from(app: Option<AppId>) -> Self {
        app.map_or(Self::Operator, Self::App)
    }
}
