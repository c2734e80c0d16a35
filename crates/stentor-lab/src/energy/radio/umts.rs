//! 3G as ARO has it: promotions to the own channel, a timer there that small packets do not reset, and a shared channel.

use super::super::nanoseconds;
use super::super::trace::{Direction, TracePacket};
use super::timeline::TimelineCursor;
use super::{Machine, RadioSink, RadioState};
use serde::Deserialize;

/// Seconds of a millisecond.
const MILLISECOND_S: f64 = 1e-3;

/// Numbers of the model, as in its file.
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

/// Bytes that wait or were counted in one direction, and when the last came.
#[derive(Debug, Clone, Copy, Default)]
struct Heap {
    bytes: f64,
    at_ns: i64,
}

#[derive(Debug, Clone, Copy)]
enum UmtsState {
    Idle,
    /// On the way until an instant, at some watts.
    Promotion(i64, f64),
    /// With the instant at which the timer began.
    Dch(i64),
    /// With the instant of the last packet there.
    Fach(i64),
}

/// A radio of 3G.
pub(super) struct Umts {
    of: UmtsCoefficients,
    cursor: TimelineCursor,
    place: UmtsState,
    /// The last packet of all.
    last_ns: i64,
    /// Per direction: what waits on the shared channel, and what was counted on the own one.
    waiting: [Heap; 2],
    counted: [Heap; 2],
}

const fn way(direction: Direction) -> usize {
    match direction {
        Direction::Up => 0,
        Direction::Down => 1,
    }
}

impl Umts {
    pub(super) fn new(of: UmtsCoefficients, since_ns: i64) -> Self {
        let none = [Heap::default(); 2];
        let cursor = TimelineCursor { at_ns: since_ns };
        Self { of, cursor, place: UmtsState::Idle, last_ns: i64::MIN / 2, waiting: none, counted: none }
    }

    /// Follows the timers until an instant; the state that holds then is not yet told.
    fn advance(&mut self, to_ns: i64, sink: &mut dyn RadioSink) {
        loop {
            let (end, state, watt, next) = match self.place {
                UmtsState::Idle => return,
                UmtsState::Promotion(end, watt) => (end, RadioState::Promotion, watt, UmtsState::Dch(end)),
                UmtsState::Dch(since) => {
                    let end = since + nanoseconds(self.of.dch_timer_s);
                    (end, RadioState::Dch, self.of.dch_w, UmtsState::Fach(end))
                }
                UmtsState::Fach(since) => {
                    let end = since + nanoseconds(self.of.fach_timer_s);
                    (end, RadioState::Fach, self.of.fach_w, UmtsState::Idle)
                }
            };
            if end >= to_ns {
                return;
            }
            self.cursor.until(end, state, watt, sink);
            self.waiting = [Heap::default(); 2];
            self.place = next;
        }
    }

    /// Reports the state that holds; a radio that packets keep in one state for ever must not keep it to itself.
    fn emit(&mut self, to_ns: i64, sink: &mut dyn RadioSink) {
        let (state, watt) = match self.place {
            UmtsState::Idle => (RadioState::Idle, self.of.idle_w),
            UmtsState::Promotion(_, watt) => (RadioState::Promotion, watt),
            UmtsState::Dch(_) => (RadioState::Dch, self.of.dch_w),
            UmtsState::Fach(_) => (RadioState::Fach, self.of.fach_w),
        };
        self.cursor.until(to_ns, state, watt, sink);
    }

    /// Adds a packet to the queue of the shared channel; returns whether it is too much for it.
    fn overflows(&mut self, packet: TracePacket) -> bool {
        let of = &self.of;
        let (p2, p1, p0, threshold) = match packet.direction {
            Direction::Up => (of.up_rate_p2, of.up_rate_p1, of.up_rate_p0, of.up_threshold_bytes),
            Direction::Down => (of.down_rate_p2, of.down_rate_p1, of.down_rate_p0, of.down_threshold_bytes),
        };
        let heap = &mut self.waiting[way(packet.direction)];
        let empties_s = (heap.bytes * heap.bytes * p2 + heap.bytes * p1 + p0) * MILLISECOND_S;
        if packet.at_ns - heap.at_ns > nanoseconds(empties_s) {
            heap.bytes = 0.0;
        }
        heap.bytes += f64::from(packet.bytes);
        heap.at_ns = packet.at_ns;
        heap.bytes > threshold
    }

    /// Counts a packet on the own channel; returns whether the timer begins anew.
    fn resets(&mut self, packet: TracePacket) -> bool {
        let window_ns = nanoseconds(self.of.reset_window_s);
        for heap in &mut self.counted {
            if packet.at_ns - heap.at_ns > window_ns {
                heap.bytes = 0.0;
            }
        }
        let heap = &mut self.counted[way(packet.direction)];
        heap.bytes += f64::from(packet.bytes);
        heap.at_ns = packet.at_ns;
        self.counted.iter().any(|heap| heap.bytes >= self.of.reset_bytes)
    }

    /// Goes to the own channel: after a packet of the device, before one to it.
    fn promote(
        &mut self,
        packet: TracePacket,
        from: (RadioState, f64),
        lasts_s: f64,
        watt: f64,
        sink: &mut dyn RadioSink,
    ) {
        let (at, lasts) = (packet.at_ns, nanoseconds(lasts_s));
        self.counted = [Heap::default(); 2];
        match packet.direction {
            Direction::Up => {
                self.cursor.until(at, from.0, from.1, sink);
                self.place = UmtsState::Promotion(at + lasts, watt);
            }
            Direction::Down => {
                self.cursor.until((at - lasts).max(self.last_ns), from.0, from.1, sink);
                self.cursor.until(at, RadioState::Promotion, watt, sink);
                self.place = UmtsState::Dch(at);
                self.resets(packet);
            }
        }
    }
}

impl Machine for Umts {
    fn packet(&mut self, packet: TracePacket, sink: &mut dyn RadioSink) {
        self.advance(packet.at_ns, sink);
        match self.place {
            UmtsState::Idle => {
                let (lasts, watt) = (self.of.idle_dch_s, self.of.idle_dch_w);
                self.promote(packet, (RadioState::Idle, self.of.idle_w), lasts, watt, sink);
            }
            UmtsState::Promotion(..) => self.emit(packet.at_ns, sink),
            UmtsState::Dch(_) => {
                self.emit(packet.at_ns, sink);
                if self.resets(packet) {
                    self.place = UmtsState::Dch(packet.at_ns);
                }
            }
            UmtsState::Fach(_) => {
                if self.overflows(packet) {
                    let (lasts, watt) = (self.of.fach_dch_s, self.of.fach_dch_w);
                    self.promote(packet, (RadioState::Fach, self.of.fach_w), lasts, watt, sink);
                } else {
                    self.emit(packet.at_ns, sink);
                    self.place = UmtsState::Fach(packet.at_ns);
                }
            }
        }
        self.last_ns = packet.at_ns;
    }

    fn finish(&mut self, to_ns: i64, sink: &mut dyn RadioSink) {
        self.advance(to_ns, sink);
        self.emit(to_ns, sink);
    }

    fn lead_ns(&self) -> i64 {
        nanoseconds(self.of.idle_dch_s)
    }

    fn rest_ns(&self) -> i64 {
        let of = &self.of;
        nanoseconds(of.idle_dch_s.max(of.fach_dch_s))
            + nanoseconds(of.dch_timer_s)
            + nanoseconds(of.fach_timer_s)
    }
}
