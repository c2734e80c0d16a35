//! Captures: the supported forms, and invalid bytes.

use super::super::pcap::CaptureContents;
use super::super::trace::{Direction, PacketTrace, TracePacket};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const DEVICE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// An IPv4 packet with only its length and addresses.
fn ipv4(source: Ipv4Addr, destination: Ipv4Addr, length: u16) -> Vec<u8> {
    let mut packet = vec![0; 20];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[12..16].copy_from_slice(&source.octets());
    packet[16..20].copy_from_slice(&destination.octets());
    packet
}

/// A capture, little-endian unless `is_big`; frames are (seconds, fraction, bytes, length on the wire).
fn file(magic: u32, link: u32, is_big: bool, frames: &[(u32, u32, Vec<u8>, u32)]) -> Vec<u8> {
    let four = |number: u32| if is_big { number.to_be_bytes() } else { number.to_le_bytes() };
    let mut bytes: Vec<u8> = [magic, 0x0002_0004, 0, 0, 65_535, link].into_iter().flat_map(four).collect();
    for (seconds, fraction, frame, whole) in frames {
        bytes.extend([*seconds, *fraction, frame.len() as u32, *whole].into_iter().flat_map(four));
        bytes.extend(frame);
    }
    bytes
}

#[test]
fn micro_and_nanoseconds_in_both_orders_of_bytes_are_read() {
    for is_big in [false, true] {
        for (magic, fraction, expected) in [(0xa1b2_c3d4, 500_000, 500_000_000), (0xa1b2_3c4d, 7, 7)] {
            let frames = [
                (3, 0, ipv4(DEVICE, SERVER, 312), 312),
                (3, fraction, ipv4(SERVER, DEVICE, 1500), 1500),
                (4, 0, ipv4(SERVER, Ipv4Addr::LOCALHOST, 40), 40),
            ];
            let capture = CaptureContents::read(&file(magic, 101, is_big, &frames)).expect("a capture");
            assert_eq!(capture.first_sender(), Some(IpAddr::V4(DEVICE)));
            let up = TracePacket::new(3_000_000_000, Direction::Up, 312);
            let down = TracePacket::new(3_000_000_000 + expected, Direction::Down, 1500);
            assert_eq!(capture.trace(DEVICE.into()).packets(), [up, down]);
        }
    }
}

/// A packet of TCP on the device's only connection.
fn tcp(is_up: bool, flags: u8, payload: u16) -> Vec<u8> {
    let (source, destination) = if is_up { (DEVICE, SERVER) } else { (SERVER, DEVICE) };
    let (from, to): (u16, u16) = if is_up { (50_000, 443) } else { (443, 50_000) };
    let mut packet = ipv4(source, destination, 40 + payload);
    packet[9] = 6;
    let mut header = vec![0; 20];
    header[..2].copy_from_slice(&from.to_be_bytes());
    header[2..4].copy_from_slice(&to.to_be_bytes());
    (header[12], header[13]) = (0x50, flags);
    packet.extend(header);
    packet
}

#[test]
fn a_bare_acknowledgement_confirms_the_last_packet_that_came_and_was_none_itself() {
    const SYN: u8 = 2;
    const ACK: u8 = 16;
    let packets = [
        (true, SYN, 0),
        (false, SYN | ACK, 0),
        (true, ACK, 0),
        (true, ACK, 100),
        (false, ACK, 0),
        (false, ACK, 200),
        (true, ACK, 0),
    ];
    let frames: Vec<(u32, u32, Vec<u8>, u32)> = packets
        .iter()
        .zip(0..)
        .map(|((is_up, flags, payload), at)| (0, at, tcp(*is_up, *flags, *payload), 40 + u32::from(*payload)))
        .collect();
    let capture = CaptureContents::read(&file(0xa1b2_3c4d, 101, false, &frames)).expect("a capture");
    let confirmed: Vec<Option<i64>> =
        capture.trace(DEVICE.into()).packets().iter().map(|packet| packet.confirms_ns).collect();
    assert_eq!(confirmed, [None, None, Some(1), None, Some(3), None, Some(5)]);
}

#[test]
fn frames_of_ethernet_count_as_the_packets_within() {
    let frame = |kind: &[u8], ip: Vec<u8>| [vec![0; 12], kind.to_vec(), ip].concat();
    let mut six = vec![0; 40];
    six[0] = 0x60;
    six[4..6].copy_from_slice(&60_u16.to_be_bytes());
    six[8..24].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
    let frames = [
        // Padded to 60 bytes on the wire; the packet's header states 40.
        (1, 0, frame(&[8, 0], ipv4(DEVICE, SERVER, 40)), 60),
        (1, 1, frame(&[0x81, 0, 0, 7, 8, 0], ipv4(DEVICE, SERVER, 100)), 118),
        (1, 2, frame(&[8, 6], vec![0; 28]), 42),
        (1, 3, frame(&[0x86, 0xdd], six), 114),
    ];
    let capture = CaptureContents::read(&file(0xa1b2_c3d4, 1, false, &frames)).expect("a capture");
    let bytes: Vec<u32> = capture.packets.iter().map(|packet| packet.bytes).collect();
    assert_eq!((bytes, capture.others), (vec![40, 100, 100], 1));
    assert_eq!(capture.packets[2].source, IpAddr::V6(Ipv6Addr::LOCALHOST));
}

#[test]
fn frames_of_any_interface_of_linux_count_as_the_packets_within() {
    let first = |kind: [u8; 2], ip: Vec<u8>| [vec![0; 14], kind.to_vec(), ip].concat();
    let second = |kind: [u8; 2], ip: Vec<u8>| [kind.to_vec(), vec![0; 18], ip].concat();
    let packets = |link: u32, header: u32, frame: &dyn Fn([u8; 2], Vec<u8>) -> Vec<u8>| {
        let frames = [
            (1, 0, frame([8, 0], ipv4(DEVICE, SERVER, 312)), 312 + header),
            (1, 1, frame([8, 0], ipv4(SERVER, DEVICE, 40)), 40 + header),
            (1, 2, frame([8, 6], vec![0; 28]), 28 + header),
        ];
        let capture = CaptureContents::read(&file(0xa1b2_c3d4, link, false, &frames)).expect("a capture");
        let bytes: Vec<u32> = capture.packets.iter().map(|packet| packet.bytes).collect();
        (capture.first_sender(), bytes, capture.others)
    };
    let expected = (Some(IpAddr::V4(DEVICE)), vec![312, 40], 1);
    assert_eq!(packets(113, 16, &first), expected);
    assert_eq!(packets(276, 20, &second), expected);
}

#[test]
fn a_capture_that_was_killed_gives_what_it_has() {
    let whole = file(
        0xa1b2_3c4d,
        101,
        false,
        &[(1, 0, ipv4(DEVICE, SERVER, 40), 40), (1, 1, ipv4(SERVER, DEVICE, 40), 40)],
    );
    let capture = CaptureContents::read(&whole[..whole.len() - 3]).expect("a capture");
    assert_eq!((capture.packets.len(), capture.is_cut), (1, true));
}

#[test]
fn what_is_no_capture_is_told_what_it_is() {
    let damaged = file(0xa1b2_3c4d, 101, false, &[(1, 0, vec![0; 16], 16)]);
    let claim = [&damaged[..32], &[0xff; 8], &damaged[40..]].concat();
    let cases = [
        (b"GIF89a".to_vec(), "6 bytes are no pcap file"),
        (vec![b'x'; 64], "does not begin with pcap's number"),
        ([vec![0x0a, 0x0d, 0x0d, 0x0a], vec![0; 60]].concat(), "pcapng"),
        (file(0xa1b2_c3d4, 105, false, &[]), "link type 105"),
        (claim, "the packet at byte 24 claims 4294967295 bytes"),
    ];
    for (bytes, expected) in cases {
        let error = CaptureContents::read(&bytes).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(
        magic in prop::sample::select(vec![0xa1b2_c3d4_u32, 0xa1b2_3c4d, 0]),
        link in prop::sample::select(vec![1_u32, 12, 101, 113, 276, 7]),
        is_big: bool,
        frames in prop::collection::vec((any::<u32>(), any::<u32>(), prop::collection::vec(any::<u8>(), 0..80), any::<u32>()), 0..6),
        noise in prop::collection::vec(any::<u8>(), 0..40),
        cut in 0..400_usize,
    ) {
        let mut bytes = file(magic, link, is_big, &frames);
        bytes.extend(noise);
        bytes.truncate(bytes.len().saturating_sub(cut));
        if let Ok(capture) = CaptureContents::read(&bytes) {
            for packet in &capture.packets {
                let trace = capture.trace(packet.source);
                prop_assert!(trace.packets().is_sorted_by_key(|packet| packet.at_ns));
            }
        }
    }
}

#[test]
fn a_list_of_packets_is_a_trace_too() {
    let list = "time_s,direction,bytes\n# from a phone\n0.25,down,900\n0,up,120\n";
    let expected =
        [TracePacket::new(0, Direction::Up, 120), TracePacket::new(250_000_000, Direction::Down, 900)];
    assert_eq!(PacketTrace::parse(list).expect("a list").packets(), expected);
    for (text, expected) in [
        ("0,up", "line 1: time in seconds, up or down"),
        ("0,up,1\n1,left,2", "line 2: \"left\" is neither"),
        ("0,up,1\n\nx,up,2", "line 3: \"x\" is no time"),
        ("0,up,-1", "line 1: \"-1\" are no bytes"),
    ] {
        let error = PacketTrace::parse(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{error}");
    }
}
