use super::*;
use crate::packet::Note;
use etherparse::PacketBuilder;
use proptest::prelude::*;

/// IP and TCP headers without options.
const HEADERS: u64 = 40;

/// Packets between a device and a server, a microsecond apart.
#[derive(Default)]
struct Story {
    packets: Vec<Packet>,
    sent: [u32; 2],
}

#[derive(Clone, Copy, PartialEq)]
enum Flag {
    Syn,
    Ack,
    Fin,
}

impl Story {
    fn tcp(&mut self, from: Side, flag: Flag, payload: &[u8]) -> &mut Self {
        let (source, target, ports) = match from {
            Side::Device => ([10, 77, 0, 1], [10, 77, 0, 2], (40_000, 80)),
            Side::Server => ([10, 77, 0, 2], [10, 77, 0, 1], (80, 40_000)),
        };
        let sequence = 1000 + self.sent[from.index()];
        let builder = PacketBuilder::ipv4(source, target, 64).tcp(ports.0, ports.1, sequence, 65_535);
        let is_first = flag == Flag::Syn && from == Side::Device;
        let builder = if is_first { builder } else { builder.ack(1) };
        let builder = match flag {
            Flag::Syn => builder.syn(),
            Flag::Ack => builder,
            Flag::Fin => builder.fin(),
        };
        let mut bytes = Vec::new();
        builder.write(&mut bytes, payload).unwrap();
        self.sent[from.index()] += payload.len() as u32 + u32::from(flag != Flag::Ack);
        let time_ns = self.packets.len() as u64 * 1000;
        let note = Note::Sent { queued_ns: 0 };
        self.packets.push(Packet { at: Side::Device, from, time_ns, note, bytes: bytes.into() });
        self
    }

    fn open(&mut self) -> &mut Self {
        use Side::{Device, Server};
        self.tcp(Device, Flag::Syn, b"").tcp(Server, Flag::Syn, b"").tcp(Device, Flag::Ack, b"")
    }

    fn anatomy(&self) -> Anatomy {
        Anatomy::of(self.packets.iter())
    }
}

const REQUEST: &[u8] = b"POST / HTTP/1.1\r\nContent-Length: 64\r\n\r\n0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

#[test]
fn the_bytes_of_one_exchange_add_up_by_purpose() {
    use Side::{Device, Server};
    let mut story = Story::default();
    story.open().tcp(Device, Flag::Ack, REQUEST).tcp(Server, Flag::Ack, b"").tcp(Server, Flag::Ack, ANSWER);
    story.tcp(Device, Flag::Ack, b"").tcp(Device, Flag::Fin, b"").tcp(Server, Flag::Fin, b"");
    story.tcp(Device, Flag::Ack, b"");
    let anatomy = story.anatomy();
    let [exchange] = &anatomy.exchanges[..] else { panic!("{anatomy:?}") };
    let framing = REQUEST.len() as u64 - 64;
    let expected = PurposeBytes {
        packets: 6,
        data_packets: 1,
        handshake_bytes: 2 * HEADERS,
        bare_ack_bytes: HEADERS,
        close_bytes: 2 * HEADERS,
        header_bytes: HEADERS,
        framing_bytes: framing,
        payload_bytes: 64,
        ..PurposeBytes::default()
    };
    assert_eq!(exchange.up, expected);
    assert_eq!((exchange.down.handshake_bytes, exchange.down.close_bytes), (HEADERS, HEADERS));
    assert_eq!((anatomy.up, anatomy.down), (exchange.up, exchange.down));
    assert_eq!((exchange.first_ns, exchange.last_ns), (0, 9000));
}

#[test]
fn overhead_counts_data_packets_only_and_the_full_exchange_beside_it() {
    use Side::{Device, Server};
    let mut story = Story::default();
    story.open().tcp(Device, Flag::Ack, REQUEST).tcp(Server, Flag::Ack, ANSWER);
    let exchange = story.anatomy().exchanges[0];
    let overhead = exchange.overhead(64, 64);
    // x and y: headers of IP and TCP, and everything of HTTP around the payload.
    let x = HEADERS + REQUEST.len() as u64 - 64;
    let y = HEADERS + ANSWER.len() as u64 - 64;
    assert_eq!(overhead.ndu_bytes, 2 * 64 + x + y);
    assert!((overhead.poh_bytes - (x + y) as f64 / 2.0).abs() < 1e-9);
    assert!((overhead.poh_share - (x + y) as f64 / (x + y + 128) as f64).abs() < 1e-9);
    assert_eq!(overhead.full_bytes, overhead.ndu_bytes + 3 * HEADERS);
}

#[test]
fn a_kept_connection_has_an_exchange_for_each_request() {
    use Side::{Device, Server};
    let mut story = Story::default();
    story.open();
    for _ in 0..3 {
        // Cut in two, which is still one exchange.
        story.tcp(Device, Flag::Ack, &REQUEST[..50]).tcp(Device, Flag::Ack, &REQUEST[50..]);
        story.tcp(Server, Flag::Ack, ANSWER).tcp(Device, Flag::Ack, b"");
    }
    let anatomy = story.anatomy();
    let handshakes: Vec<u64> = anatomy.exchanges.iter().map(|exchange| exchange.up.handshake_bytes).collect();
    assert_eq!(handshakes, [2 * HEADERS, 0, 0]);
    assert!(anatomy.exchanges.iter().all(|exchange| exchange.up.payload_bytes == 64));
    assert!(anatomy.exchanges.iter().all(|exchange| exchange.down.data_packets == 1));
}

#[test]
fn a_packet_sent_again_is_no_payload() {
    use Side::Device;
    let mut story = Story::default();
    story.open().tcp(Device, Flag::Ack, REQUEST);
    story.sent[0] -= REQUEST.len() as u32;
    story.tcp(Device, Flag::Ack, REQUEST);
    let up = story.anatomy().up;
    assert_eq!((up.payload_bytes, up.data_packets), (64, 1));
    assert_eq!(up.repeated_bytes, HEADERS + REQUEST.len() as u64);
}

#[test]
fn a_port_that_is_used_again_is_another_connection() {
    use Side::{Device, Server};
    let mut story = Story::default();
    story.open().tcp(Device, Flag::Fin, b"").tcp(Server, Flag::Fin, b"");
    story.open().tcp(Device, Flag::Ack, REQUEST);
    let connections: Vec<usize> =
        story.anatomy().exchanges.iter().map(|exchange| exchange.connection).collect();
    assert_eq!(connections, [0, 1]);
}

/// A packet as a hostile peer might send it.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let mut story = Story::default();
    story.open().tcp(Side::Device, Flag::Ack, REQUEST).tcp(Side::Server, Flag::Fin, ANSWER);
    let real: Vec<Vec<u8>> = story.packets.iter().map(|packet| packet.bytes.to_vec()).collect();
    let changed = (prop::sample::select(real), prop::collection::vec((any::<usize>(), any::<u8>()), 0..6));
    let changed = (changed, 0..200_usize).prop_map(|((mut bytes, changes), cut)| {
        for (at, value) in changes {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        bytes.truncate(cut.max(1));
        bytes
    });
    prop_oneof![changed, prop::collection::vec(any::<u8>(), 0..80)]
}

proptest! {
    #[test]
    fn every_byte_of_any_packets_is_counted_once(
        packets in prop::collection::vec((any::<bool>(), hostile()), 0..30),
    ) {
        let packets: Vec<Packet> = packets
            .into_iter()
            .enumerate()
            .map(|(at, (is_up, bytes))| {
                let from = if is_up { Side::Device } else { Side::Server };
                let note = Note::Received { late_ns: 0 };
                Packet { at: Side::Device, from, time_ns: at as u64, note, bytes: bytes.into() }
            })
            .collect();
        let anatomy = Anatomy::of(packets.iter());
        let bytes: usize = packets.iter().map(|packet| packet.bytes.len()).sum();
        prop_assert_eq!(anatomy.up.wire_bytes() + anatomy.down.wire_bytes(), bytes as u64);
        prop_assert_eq!(anatomy.up.packets + anatomy.down.packets, packets.len() as u64);
    }
}
