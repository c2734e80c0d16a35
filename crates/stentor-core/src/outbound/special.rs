//! The addresses outside the public internet: those in IANA's special-purpose registries (RFC 6890 and its successors), and addresses that
//! clouds use for their own services.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

use super::AddressKind;
use super::AddressKind::{LinkLocal, Loopback, Metadata, Multicast, Private, Reserved, Shared, Unspecified};

/// Networks with their kinds; the first network that contains an address determines its kind.
const IPV4: &[(Ipv4Net, AddressKind)] = &[
    // AWS, Azure, Google, Oracle and others; AWS for containers; Alibaba; Azure; Oracle's former generation.
    (v4([169, 254, 169, 254], 32), Metadata),
    (v4([169, 254, 170, 2], 32), Metadata),
    (v4([169, 254, 170, 23], 32), Metadata),
    (v4([100, 100, 100, 200], 32), Metadata),
    (v4([168, 63, 129, 16], 32), Metadata),
    (v4([192, 0, 0, 192], 32), Metadata),
    (v4([0, 0, 0, 0], 8), Unspecified),
    (v4([10, 0, 0, 0], 8), Private),
    (v4([100, 64, 0, 0], 10), Shared),
    (v4([127, 0, 0, 0], 8), Loopback),
    (v4([169, 254, 0, 0], 16), LinkLocal),
    (v4([172, 16, 0, 0], 12), Private),
    (v4([192, 0, 0, 0], 24), Reserved),
    (v4([192, 0, 2, 0], 24), Reserved),
    (v4([192, 88, 99, 0], 24), Reserved),
    (v4([192, 168, 0, 0], 16), Private),
    (v4([198, 18, 0, 0], 15), Reserved),
    (v4([198, 51, 100, 0], 24), Reserved),
    (v4([203, 0, 113, 0], 24), Reserved),
    (v4([224, 0, 0, 0], 4), Multicast),
    // The last of them is the broadcast address of a network.
    (v4([240, 0, 0, 0], 4), Reserved),
];

/// The same for IPv6; addresses outside 2000::/3 count as reserved as well.
const IPV6: &[(Ipv6Net, AddressKind)] = &[
    // AWS, also for containers; Google.
    (v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128), Metadata),
    (v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23], 128), Metadata),
    (v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128), Metadata),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), Unspecified),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), Loopback),
    // Protocol assignments, including Teredo and benchmarking.
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), Reserved),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), Reserved),
    // 6to4, which can embed any IPv4 address.
    (v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), Reserved),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), Reserved),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), Private),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), LinkLocal),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), Private),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), Multicast),
];

/// The range of global unicast addresses.
const GLOBAL_UNICAST: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// IPv4 addresses as used in IPv6-only networks, which translate them (RFC 6052).
const TRANSLATED: Ipv6Net = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);

const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6([a, b, c, d, e, f, g, h]: [u16; 8], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix)
}

/// Returns the address that is actually reached: the embedded IPv4 address of an IPv6 address, or the address itself.
pub(super) fn reached(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if TRANSLATED.contains(&v6) => {
            let [.., a, b, c, d] = v6.octets();
            Ipv4Addr::new(a, b, c, d).into()
        }
        other => other,
    }
}

/// Returns the kind of an address, or `None` if it belongs to the public internet.
pub(super) fn kind(address: IpAddr) -> Option<AddressKind> {
    match address {
        IpAddr::V4(v4) => IPV4.iter().find(|(network, _)| network.contains(&v4)).map(|(_, kind)| *kind),
        IpAddr::V6(v6) => {
            let special = IPV6.iter().find(|(network, _)| network.contains(&v6)).map(|(_, kind)| *kind);
            special.or_else(|| (!GLOBAL_UNICAST.contains(&v6)).then_some(Reserved))
        }
    }
}
