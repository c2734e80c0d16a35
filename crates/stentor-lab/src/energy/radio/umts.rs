//! 3G as modelled by ARO: promotions to the dedicated channel, whose timer small packets do not reset, and a shared channel.

use super::super::nanoseconds;
use super::super::trace::{Direction, TracePacket};
use super::channels::{ChannelState, Channels, Heap};
use super::timeline::TimelineCursor;
use super::{Machine, RadioSink, RadioState};
use serde::Deserialize;

/// Seconds of a millisecond.
const MILLISECOND_S: f64 = 1e-3;

/// Coefficients of the model, named as in its file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UmtsCoefficients {
    idle_w: f64,
    dch_w: f64,
    fach_w: f64,
    dch_timer_s: f64,
    fach_timer_s: f64,
    idle_dch_s: f64,
    idle_dch_w: f64,
    fach_dch_s: f64,
    fach_dch_w: f64,
    up_threshold_bytes: f64,
    down_threshold_bytes: f64,
    reset_bytes: f64,
    reset_window_s: f64,
    up_rate_p2: f64,
    up_rate_p1: f64,
    up_rate_p0: f64,
    down_rate_p2: f64,
    down_rate_p1: f64,
    down_rate_p0: f64,
}

/// A 3G radio.
pub(super) struct Umts {
    of: UmtsCoefficients,
    channels: Channels,
    /// Time of the last packet.
    last_ns: i64,
    /// Bytes counted on the dedicated channel, by direction.
    counted: [Heap; 2],
}

impl Umts {
    pub(super) fn new(of: UmtsCoefficients, since_ns: i64) -> Self {
        let none = [Heap::default(); 2];
        let channels = Channels {
            cursor: TimelineCursor { at_ns: since_ns },
            place: ChannelState::Idle,
            waiting: none,
            idle_w: of.idle_w,
            dch_w: of.dch_w,
            fach_w: of.fach_w,
            dch_timer_ns: nanoseconds(of.dch_timer_s),
            fach_timer_ns: nanoseconds(of.fach_timer_s),
        };
        Self { of, channels, last_ns: i64::MIN / 2, counted: none }
    }

    /// Adds a packet to the queue of the shared channel. Returns true if the queue overflows.
    fn overflows(&mut self, packet: TracePacket) -> bool {
        let of = &self.of;
        let (p2, p1, p0, threshold) = match packet.direction {
            Direction::Up => (of.up_rate_p2, of.up_rate_p1, of.up_rate_p0, of.up_threshold_bytes),
            Direction::Down => (of.down_rate_p2, of.down_rate_p1, of.down_rate_p0, of.down_threshold_bytes),
        };
        let heap = &mut self.channels.waiting[packet.direction as usize];
        let empties_s = (heap.bytes * heap.bytes * p2 + heap.bytes * p1 + p0) * MILLISECOND_S;
        heap.expire(packet.at_ns, nanoseconds(empties_s));
        heap.add(packet);
        heap.bytes > threshold
    }

    /// Counts a packet on the dedicated channel. Returns true if the timer restarts.
    fn resets(&mut self, packet: TracePacket) -> bool {
        let window_ns = nanoseconds(self.of.reset_window_s);
        self.counted.iter_mut().for_each(|heap| heap.expire(packet.at_ns, window_ns));
        self.counted[packet.direction as usize].add(packet);
        self.counted.iter().any(|heap| heap.bytes >= self.of.reset_bytes)
    }

    /// Moves to the dedicated channel: after a packet from the device, before a packet to it.
    fn promote(&mut self, packet: TracePacket, lasts_s: f64, watt: f64, sink: &mut dyn RadioSink) {
        let (at, lasts) = (packet.at_ns, nanoseconds(lasts_s));
        self.counted = [Heap::default(); 2];
        let channels = &mut self.channels;
        match packet.direction {
            Direction::Up => {
                channels.emit(at, sink);
                let end_ns = at + lasts;
                channels.place = ChannelState::Promotion { end_ns, watt, timer_from_ns: end_ns };
            }
            Direction::Down => {
                channels.emit((at - lasts).max(self.last_ns), sink);
                channels.cursor.until(at, RadioState::Promotion, watt, sink);
                channels.place = ChannelState::Dch(at);
                self.resets(packet);
            }
        }
    }
}

impl Machine for Umts {
    fn packet(&mut self, packet: TracePacket, sink: &mut dyn RadioSink) {
        self.channels.advance(packet.at_ns, sink);
        match self.channels.place {
            ChannelState::Idle => self.promote(packet, self.of.idle_dch_s, self.of.idle_dch_w, sink),
            ChannelState::Promotion { .. } => self.channels.emit(packet.at_ns, sink),
            ChannelState::Dch(_) => {
                self.channels.emit(packet.at_ns, sink);
                if self.resets(packet) {
                    self.channels.place = ChannelState::Dch(packet.at_ns);
                }
            }
            ChannelState::Fach(_) => {
                if self.overflows(packet) {
                    self.promote(packet, self.of.fach_dch_s, self.of.fach_dch_w, sink);
                } else {
                    self.channels.emit(packet.at_ns, sink);
                    self.channels.place = ChannelState::Fach(packet.at_ns);
                }
            }
        }
        self.last_ns = packet.at_ns;
    }

    fn finish(&mut self, to_ns: i64, sink: &mut dyn RadioSink) {
        self.channels.finish(to_ns, sink);
    }

    fn lead_ns(&self) -> i64 {
        nanoseconds(self.of.idle_dch_s)
    }

    fn rest_ns(&self) -> i64 {
        let promotion_ns = nanoseconds(self.of.idle_dch_s.max(self.of.fach_dch_s));
        promotion_ns + self.channels.dch_timer_ns + self.channels.fach_timer_ns
    }
}
