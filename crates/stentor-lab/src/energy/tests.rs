mod battery;
mod exchanges;
mod imported;
mod measured;
mod pcap;
mod phases;
mod phone_log;
mod radio;

use super::EnergySource;
use super::trace::{Direction, PacketTrace, TracePacket};

/// Nanoseconds of a millisecond.
const MS: i64 = 1_000_000;

fn up(at_ms: i64, bytes: u32) -> TracePacket {
    TracePacket::new(at_ms * MS, Direction::Up, bytes)
}

fn down(at_ms: i64, bytes: u32) -> TracePacket {
    TracePacket::new(at_ms * MS, Direction::Down, bytes)
}

#[track_caller]
fn assert_near(value: f64, expected: f64, off: f64) {
    assert!((value - expected).abs() <= off, "{value} is not within {off} of {expected}");
}

fn all_joules(source: &dyn EnergySource) -> f64 {
    let (from, to) = source.span_ns().expect("a span");
    source.joules(from, to).expect("joules")
}

/// One exchange every 500 ms; `packets` holds the packets of one exchange, with times in milliseconds.
fn exchanges(count: i64, packets: &[TracePacket]) -> PacketTrace {
    let moved = |round: i64| {
        packets.iter().map(move |packet| TracePacket { at_ns: packet.at_ns + round * 500 * MS, ..*packet })
    };
    PacketTrace::new((0..count).flat_map(moved).collect())
}
