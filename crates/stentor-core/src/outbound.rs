//! The outbound policy: the server connects for its tenants only to addresses of the public internet and to those that the operator allows.
//!
//! The check is pure. It runs at each connection on each resolved address: a rule about names could be evaded by the owner of the name's
//! DNS. An address that stands for an IPv4 address is checked as that address.

mod special;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use ipnet::IpNet;

use crate::error::Invalid;

/// The kinds of addresses outside the public internet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressKind {
    /// This machine.
    Loopback,
    /// A private network (RFC 1918, RFC 4193).
    Private,
    /// The network to which this machine is attached.
    LinkLocal,
    /// A metadata service, from which a cloud's machines read their secrets.
    Metadata,
    /// Behind a carrier's address translation (RFC 6598).
    Shared,
    /// Many machines at once.
    Multicast,
    /// The unspecified address, which systems treat as this machine.
    Unspecified,
    /// Reserved: for documentation, benchmarks, translation, future use.
    Reserved,
}

impl AddressKind {
    /// Returns its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::Metadata => "metadata",
            Self::Shared => "shared",
            Self::Multicast => "multicast",
            Self::Unspecified => "unspecified",
            Self::Reserved => "reserved",
        }
    }

    /// Returns the kind of an address, or `None` if it belongs to the public internet.
    #[must_use]
    pub fn of(address: IpAddr) -> Option<Self> {
        special::kind(special::reached(address))
    }
}

/// An address that may not be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{address} is refused: it is a {} address", .kind.as_str())]
pub struct Refused {
    /// The address that is refused.
    pub address: IpAddr,
    /// Its kind.
    pub kind: AddressKind,
}

impl Refused {
    /// Returns the narrowest allowance that would permit the address.
    #[must_use]
    pub fn allowance(&self) -> Allowance {
        match self.kind {
            AddressKind::Loopback => Allowance::Loopback,
            AddressKind::Private => Allowance::Private,
            _ => Allowance::Network(special::reached(self.address).into()),
        }
    }
}

/// An allowance of the operator beyond the public internet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowance {
    /// This machine; written as `loopback`.
    Loopback,
    /// All private networks, written as `private`; metadata addresses inside them are excluded.
    Private,
    /// All addresses of a network.
    Network(IpNet),
}

impl Allowance {
    fn holds(&self, address: IpAddr) -> bool {
        match self {
            Self::Loopback => AddressKind::of(address) == Some(AddressKind::Loopback),
            Self::Private => AddressKind::of(address) == Some(AddressKind::Private),
            Self::Network(network) => {
                network.contains(&address) || network.contains(&special::reached(address))
            }
        }
    }
}

impl FromStr for Allowance {
    type Err = Invalid;

    /// Parses `loopback`, `private`, a network such as `10.0.0.0/8`, or a single address.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let wrong = |problem: &str| Invalid::new("", format!("`{text}` {problem}"));
        let network = match text {
            "loopback" => return Ok(Self::Loopback),
            "private" => return Ok(Self::Private),
            _ => text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)),
        };
        let network: IpNet = network.map_err(|_| {
            wrong("must be a network such as 10.0.0.0/8 or fd00::/8, an address, `loopback` or `private`")
        })?;
        if network.addr().to_canonical() != network.addr() {
            return Err(wrong("has no effect: write it as an IPv4 network"));
        }
        Ok(Self::Network(network.trunc()))
    }
}

impl fmt::Display for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loopback => f.write_str("loopback"),
            Self::Private => f.write_str("private"),
            Self::Network(network) => network.fmt(f),
        }
    }
}

/// Decides which addresses may be connected to; by default only those of the public internet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutboundPolicy {
    allowed: Vec<Allowance>,
}

impl OutboundPolicy {
    /// Allows networks in addition to the public internet.
    #[must_use]
    pub const fn new(allowed: Vec<Allowance>) -> Self {
        Self { allowed }
    }

    /// Fails if an address may not be connected to.
    pub fn check(&self, address: IpAddr) -> Result<(), Refused> {
        match AddressKind::of(address) {
            Some(kind) if !self.allowed.iter().any(|allowance| allowance.holds(address)) => {
                Err(Refused { address, kind })
            }
            _ => Ok(()),
        }
    }

    /// Returns the permitted ones among a name's addresses. Fails with the first refusal if none is permitted.
    pub fn permitted(&self, addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Refused> {
        let first = addresses.iter().find_map(|address| self.check(address.ip()).err());
        let permitted: Vec<_> =
            addresses.into_iter().filter(|address| self.check(address.ip()).is_ok()).collect();
        match first {
            Some(refused) if permitted.is_empty() => Err(refused),
            _ => Ok(permitted),
        }
    }
}
