//! 3G as modelled by EnergyBox: thresholds of single packets and of queues select the shared or the dedicated channel.

use super::super::nanoseconds;
use super::super::trace::{Direction, TracePacket};
use super::channels::{ChannelState, Channels, Heap};
use super::timeline::TimelineCursor;
use super::{Machine, RadioSink};
use serde::Deserialize;

/// Seconds of a millisecond.
const MILLISECOND_S: f64 = 1e-3;

/// Coefficients of the model, named as in its file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UmtsBoxCoefficients {
    idle_w: f64,
    fach_w: f64,
    dch_w: f64,
    dch_timer_s: f64,
    fach_timer_s: f64,
    idle_dch_s: f64,
    idle_up_threshold_bytes: f64,
    idle_down_threshold_bytes: f64,
    fach_up_threshold_bytes: f64,
    fach_down_threshold_bytes: f64,
    up_empty_ms_per_byte: f64,
    up_empty_ms: f64,
    down_empty_ms: f64,
}

/// A 3G radio.
pub(super) struct UmtsBox {
    of: UmtsBoxCoefficients,
    channels: Channels,
}

impl UmtsBox {
    pub(super) fn new(of: UmtsBoxCoefficients, since_ns: i64) -> Self {
        let channels = Channels {
            cursor: TimelineCursor { at_ns: since_ns },
            place: ChannelState::Idle,
            waiting: [Heap::default(); 2],
            idle_w: of.idle_w,
            dch_w: of.dch_w,
            fach_w: of.fach_w,
            dch_timer_ns: nanoseconds(of.dch_timer_s),
            fach_timer_ns: nanoseconds(of.fach_timer_s),
        };
        Self { of, channels }
    }

    /// Adds a packet to the queue of the shared channel. Returns true if the queue overflows.
    fn overflows(&mut self, packet: TracePacket) -> bool {
        let of = &self.of;
        let heap = &mut self.channels.waiting[packet.direction as usize];
        let (threshold, empties_ms) = match packet.direction {
            Direction::Up => {
                (of.fach_up_threshold_bytes, of.up_empty_ms_per_byte * heap.bytes + of.up_empty_ms)
            }
            Direction::Down => (of.fach_down_threshold_bytes, of.down_empty_ms),
        };
        heap.expire(packet.at_ns, nanoseconds(empties_ms * MILLISECOND_S));
        heap.add(packet);
        heap.bytes > threshold
    }

    /// Returns the state to which a packet moves an idle radio.
    fn woken(&self, packet: TracePacket) -> ChannelState {
        let threshold = match packet.direction {
            Direction::Up => self.of.idle_up_threshold_bytes,
            Direction::Down => self.of.idle_down_threshold_bytes,
        };
        if f64::from(packet.bytes) <= threshold {
            return ChannelState::Fach(packet.at_ns);
        }
        let end_ns = packet.at_ns + nanoseconds(self.of.idle_dch_s);
        ChannelState::Promotion { end_ns, watt: self.of.idle_w, timer_from_ns: packet.at_ns }
    }
}

impl Machine for UmtsBox {
    fn packet(&mut self, packet: TracePacket, sink: &mut dyn RadioSink) {
        self.channels.advance(packet.at_ns, sink);
        self.channels.emit(packet.at_ns, sink);
        let place = self.channels.place;
        self.channels.place = match place {
            ChannelState::Idle => self.woken(packet),
            ChannelState::Promotion { end_ns, watt, .. } => {
                ChannelState::Promotion { end_ns, watt, timer_from_ns: packet.at_ns }
            }
            ChannelState::Fach(_) if !self.overflows(packet) => ChannelState::Fach(packet.at_ns),
            ChannelState::Dch(_) | ChannelState::Fach(_) => ChannelState::Dch(packet.at_ns),
        };
    }

    fn finish(&mut self, to_ns: i64, sink: &mut dyn RadioSink) {
        self.channels.finish(to_ns, sink);
    }

    fn lead_ns(&self) -> i64 {
        0
    }

    fn rest_ns(&self) -> i64 {
        nanoseconds(self.of.idle_dch_s) + self.channels.dch_timer_ns + self.channels.fach_timer_ns
    }
}
