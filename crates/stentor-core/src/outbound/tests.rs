use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::AddressKind::{LinkLocal, Loopback, Metadata, Multicast, Private, Reserved, Shared, Unspecified};
use super::*;

fn policy(allowed: &[&str]) -> OutboundPolicy {
    OutboundPolicy::new(allowed.iter().map(|text| text.parse().expect(text)).collect())
}

fn kind(text: &str) -> Option<AddressKind> {
    AddressKind::of(text.parse().expect(text))
}

/// The first and the last address of each special network, and alternative notations.
const SPECIAL: &[(AddressKind, &[&str])] = &[
    (Unspecified, &["0.0.0.0", "0.0.0.1", "0.255.255.255", "::", "::ffff:0.0.0.0", "64:ff9b::"]),
    (Loopback, &["127.0.0.0", "127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"]),
    (
        Private,
        &["10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0", "192.168.255.255"],
    ),
    (Private, &["::ffff:10.0.0.1", "::ffff:c0a8:101", "64:ff9b::10.0.0.1", "64:ff9b::172.16.0.1"]),
    (Private, &["fc00::", "fd00::1", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fec0::1", "feff::1"]),
    (
        LinkLocal,
        &["169.254.0.0", "169.254.255.255", "::ffff:169.254.1.1", "fe80::", "fe80::a9fe:a9fe", "febf::1"],
    ),
    (Metadata, &["169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "168.63.129.16"]),
    (Metadata, &["192.0.0.192", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "64:ff9b::169.254.169.254"]),
    (Metadata, &["fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254"]),
    (Shared, &["100.64.0.0", "100.127.255.255", "::ffff:100.64.0.1"]),
    (Multicast, &["224.0.0.0", "239.255.255.255", "ff00::", "ff02::1", "ffff::"]),
    (Reserved, &["192.0.0.0", "192.0.0.255", "192.0.2.0", "192.0.2.255", "192.88.99.0", "192.88.99.255"]),
    (
        Reserved,
        &["198.18.0.0", "198.19.255.255", "198.51.100.0", "198.51.100.255", "203.0.113.0", "203.0.113.255"],
    ),
    (Reserved, &["240.0.0.0", "255.255.255.254", "255.255.255.255", "::ffff:255.255.255.255"]),
    // IPv4 within IPv6, the former way, by SIIT, 6to4 and Teredo.
    (
        Reserved,
        &[
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:0:127.0.0.1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2002:808:808::",
        ],
    ),
    (
        Reserved,
        &["2001::", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::", "2001:20::1", "2001:1ff:ffff::"],
    ),
    (
        Reserved,
        &[
            "2001:db8::",
            "2001:db8:ffff::1",
            "3fff::",
            "3fff:fff:ffff::",
            "64:ff9b:1::",
            "100::1",
            "5f00::",
            "4000::",
        ],
    ),
];

/// The neighbours of the special networks, and hosts that must be reachable.
const PUBLIC: &[&str] = &[
    "1.0.0.0",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "168.63.129.15",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "191.255.255.255",
    "192.0.1.0",
    "192.0.3.0",
    "192.88.98.255",
    "192.88.100.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "198.51.99.255",
    "198.51.101.0",
    "203.0.112.255",
    "203.0.114.0",
    "223.255.255.255",
    "8.8.8.8",
    "17.188.143.34",
    "142.250.74.106",
    "2000::",
    "2001:200::",
    "2001:4860:4860::8888",
    "2001:db7::",
    "2001:db9::",
    "2003::",
    "2620:149::1",
    "2a00:1450:4001:80f::200a",
    "3ffe:ffff::",
    "3fff:1000::",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
];

#[test]
fn every_special_address_is_told_by_its_kind_and_refused() {
    for (wanted, addresses) in SPECIAL {
        for address in *addresses {
            assert_eq!(kind(address), Some(*wanted), "{address}");
            let refused = policy(&[]).check(address.parse().expect(address)).expect_err(address);
            assert_eq!(refused.kind, *wanted);
            let allowed = OutboundPolicy::new(vec![refused.allowance()]);
            assert_eq!(allowed.check(refused.address), Ok(()), "{address}");
        }
    }
}

#[test]
fn the_public_internet_is_not_refused_right_up_to_the_special_networks() {
    for address in PUBLIC {
        assert_eq!(policy(&[]).check(address.parse().expect(address)), Ok(()), "{address}");
    }
}

#[test]
fn the_words_allow_what_they_say_and_no_metadata() {
    let may = |word: &str, address: &str| policy(&[word]).check(address.parse().expect(address)).is_ok();
    for (kind, addresses) in SPECIAL {
        for address in *addresses {
            assert_eq!(may("loopback", address), *kind == Loopback, "{address}");
            assert_eq!(may("private", address), *kind == Private, "{address}");
        }
    }
}

#[test]
fn a_network_allows_what_is_in_it_however_it_is_written() {
    let policy = policy(&["10.1.0.0/16", "fd12::/32", "192.0.2.7", "2001:db8::1"]);
    let may = |address: &str| policy.check(address.parse().expect(address)).is_ok();
    for allowed in [
        "10.1.0.0",
        "10.1.255.255",
        "::ffff:10.1.2.3",
        "64:ff9b::10.1.2.3",
        "fd12::1",
        "192.0.2.7",
        "2001:db8::1",
    ] {
        assert!(may(allowed), "{allowed}");
    }
    for refused in
        ["10.0.255.255", "10.2.0.0", "fd13::1", "192.0.2.8", "2001:db8::2", "2002:a01:203::", "::10.1.2.3"]
    {
        assert!(!may(refused), "{refused}");
    }
}

#[test]
fn allowances_are_read_and_shown_and_what_has_no_effect_is_refused() {
    for (text, shown) in [
        ("loopback", "loopback"),
        ("private", "private"),
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("192.0.2.7", "192.0.2.7/32"),
        ("fd00::1", "fd00::1/128"),
        ("0.0.0.0/0", "0.0.0.0/0"),
    ] {
        assert_eq!(text.parse::<Allowance>().expect(text).to_string(), shown);
    }
    for wrong in [
        "",
        "Loopback",
        "localhost",
        "10.0.0.0/33",
        "10.0.0",
        "010.0.0.1",
        "fd00::/129",
        "*",
        "::ffff:10.0.0.0/104",
    ] {
        let refused = wrong.parse::<Allowance>().expect_err(wrong);
        assert!(refused.problem.contains(wrong), "{refused}");
    }
}

#[test]
fn of_several_addresses_the_permitted_ones_are_kept_in_their_order() {
    let list =
        |texts: &[&str]| -> Vec<SocketAddr> { texts.iter().map(|text| text.parse().expect(text)).collect() };
    let mixed = list(&["10.0.0.1:443", "8.8.8.8:443", "[::1]:443", "[2001:4860::1]:443"]);
    assert_eq!(policy(&[]).permitted(mixed), Ok(list(&["8.8.8.8:443", "[2001:4860::1]:443"])));
    let refused = policy(&[]).permitted(list(&["127.0.0.1:1", "10.0.0.1:1"])).expect_err("refused");
    assert_eq!(refused.to_string(), "127.0.0.1 is refused: it is a loopback address");
    assert_eq!(policy(&[]).permitted(Vec::new()), Ok(Vec::new()));
}

fn any_v4() -> impl Strategy<Value = Ipv4Addr> {
    any::<u32>().prop_map(Ipv4Addr::from)
}

proptest! {
    #[test]
    fn an_ipv4_address_is_judged_alike_however_it_is_written(v4 in any_v4()) {
        let [a, b, c, d] = v4.octets().map(u16::from);
        let tail = [a << 8 | b, c << 8 | d];
        let mapped = v4.to_ipv6_mapped();
        let translated = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, tail[0], tail[1]);
        let alone = AddressKind::of(v4.into());
        prop_assert_eq!(AddressKind::of(mapped.into()), alone);
        prop_assert_eq!(AddressKind::of(translated.into()), alone);
        // Embedded addresses of these forms are all refused, because private ones cannot be distinguished.
        let siit = Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, tail[0], tail[1]);
        let to4 = Ipv6Addr::new(0x2002, tail[0], tail[1], 0, 0, 0, 0, 1);
        let teredo = Ipv6Addr::new(0x2001, 0, 0x4136, 0xe378, 0x8000, 0x63bf, !tail[0], !tail[1]);
        for within in [v4.to_ipv6_compatible(), siit, to4, teredo] {
            prop_assert!(AddressKind::of(within.into()).is_some(), "{within}");
        }
    }

    #[test]
    fn whatever_the_standard_library_calls_local_is_refused(v4 in any_v4(), bits in any::<u128>()) {
        let is_local = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_broadcast()
            || v4.is_documentation() || v4.is_multicast() || v4.is_unspecified();
        prop_assert!(!is_local || AddressKind::of(v4.into()).is_some(), "{v4}");
        let v6 = Ipv6Addr::from(bits);
        let is_local = v6.is_loopback() || v6.is_multicast() || v6.is_unspecified()
            || v6.is_unique_local() || v6.is_unicast_link_local();
        prop_assert!(!is_local || AddressKind::of(v6.into()).is_some(), "{v6}");
    }

    #[test]
    fn allowing_a_network_allows_exactly_its_own_addresses_beside_the_public_ones(
        v4 in any_v4(), base in any_v4(), prefix in 0_u8..=32,
    ) {
        let policy = policy(&[&format!("{base}/{prefix}")]);
        let within = prefix == 0 || (u32::from(v4) ^ u32::from(base)) >> (32 - prefix) == 0;
        let is_public = AddressKind::of(v4.into()).is_none();
        prop_assert_eq!(policy.check(v4.into()).is_ok(), is_public || within);
        prop_assert_eq!(policy.check(v4.to_ipv6_mapped().into()).is_ok(), is_public || within);
    }
}
