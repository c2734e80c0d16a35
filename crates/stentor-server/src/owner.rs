//! The owner to which shared resources are charged: places, bytes, rates.

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

/// The owner of a place, of bytes or of a rate. Everything that is taken has an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The operator: the root key.
    Operator,
    /// An app: a key kept on its servers.
    App(AppId),
    /// An authenticated device of an app.
    Device(AppId, DeviceId),
    /// A caller from an address with a credential that the app publishes: its join key, a subscription of Web Push.
    Guest(AppId, SourceNetwork),
    /// An unauthenticated caller from an address.
    Address(SourceNetwork),
}

impl SourceNetwork {
    /// Placeholder for an unknown address; all callers without one share it.
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
    /// Returns the app that is charged; none for the operator and for addresses.
    #[must_use]
    pub const fn app(&self) -> Option<AppId> {
        match self {
            Self::App(app) | Self::Device(app, _) | Self::Guest(app, _) => Some(*app),
            Self::Operator | Self::Address(_) => None,
        }
    }

    /// Returns true for a device or a guest, each of which has a part of its app's share.
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

/// Returns the app of a key; the operator's key has none.
impl From<Option<AppId>> for Owner {
    fn from(app: Option<AppId>) -> Self {
        app.map_or(Self::Operator, Self::App)
    }
}
