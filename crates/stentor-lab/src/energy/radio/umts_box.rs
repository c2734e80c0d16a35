//! 3G as EnergyBox has it: thresholds of single packets and of queues decide between the shared and the own channel.

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

#[derive(Debug, Clone, Copy)]
enum UmtsBoxState {
    Idle,
    /// On the way to the own channel until an instant.
    Promotion(i64),
    Dch,
    /// With the instant from which the timer counts.
    Fach(i64),
}

/// A radio of 3G.
pub(super) struct UmtsBox {
    of: UmtsBoxCoefficients,
    cursor: TimelineCursor,
    place: UmtsBoxState,
    last_ns: i64,
    /// Per direction: bytes that wait on the shared channel, and when the last came.
    waiting: [(f64, i64); 2],
}

impl UmtsBox {
    pub(super) fn new(of: UmtsBoxCoefficients, since_ns: i64) -> Self {
        let cursor = TimelineCursor { at_ns: since_ns };
        Self { of, cursor, place: UmtsBoxState::Idle, last_ns: since_ns, waiting: [(0.0, 0); 2] }
    }

    /// Follows the timers until an instant; the state that holds then is not yet told.
    fn advance(&mut self, to_ns: i64, sink: &mut dyn RadioSink) {
        loop {
            let (end, state, watt, next) = match self.place {
                UmtsBoxState::Idle => return,
                UmtsBoxState::Promotion(end) => {
                    (end, RadioState::Promotion, self.of.idle_w, UmtsBoxState::Dch)
                }
                UmtsBoxState::Dch => {
                    let end = self.cursor.at_ns.max(self.last_ns + nanoseconds(self.of.dch_timer_s));
                    (end, RadioState::Dch, self.of.dch_w, UmtsBoxState::Fach(end))
                }
                UmtsBoxState::Fach(since) => {
                    let end = since + nanoseconds(self.of.fach_timer_s);
                    (end, RadioState::Fach, self.of.fach_w, UmtsBoxState::Idle)
                }
            };
            if end >= to_ns {
                return;
            }
            self.cursor.until(end, state, watt, sink);
            self.waiting = [(0.0, 0); 2];
            self.place = next;
        }
    }

    /// Reports the state that holds; a radio that packets keep in one state for ever must not keep it to itself.
    fn emit(&mut self, to_ns: i64, sink: &mut dyn RadioSink) {
        let (state, watt) = match self.place {
            UmtsBoxState::Idle => (RadioState::Idle, self.of.idle_w),
            UmtsBoxState::Promotion(_) => (RadioState::Promotion, self.of.idle_w),
            UmtsBoxState::Dch => (RadioState::Dch, self.of.dch_w),
            UmtsBoxState::Fach(_) => (RadioState::Fach, self.of.fach_w),
        };
        self.cursor.until(to_ns, state, watt, sink);
    }

    fn overflows(&mut self, packet: TracePacket) -> bool {
        let of = &self.of;
        let (way, threshold, empties_ms) = match packet.direction {
            Direction::Up => {
                let empties_ms = of.up_empty_ms_per_byte * self.waiting[0].0 + of.up_empty_ms;
                (0, of.fach_up_threshold_bytes, empties_ms)
            }
            Direction::Down => (1, of.fach_down_threshold_bytes, of.down_empty_ms),
        };
        let (bytes, at_ns) = &mut self.waiting[way];
        if packet.at_ns - *at_ns > nanoseconds(empties_ms * MILLISECOND_S) {
            *bytes = 0.0;
        }
        *bytes += f64::from(packet.bytes);
        *at_ns = packet.at_ns;
        *bytes > threshold
    }

    fn wake(&mut self, packet: TracePacket, sink: &mut dyn RadioSink) {
        let threshold = match packet.direction {
            Direction::Up => self.of.idle_up_threshold_bytes,
            Direction::Down => self.of.idle_down_threshold_bytes,
        };
        self.cursor.until(packet.at_ns, RadioState::Idle, self.of.idle_w, sink);
        self.place = if f64::from(packet.bytes) > threshold {
            UmtsBoxState::Promotion(packet.at_ns + nanoseconds(self.of.idle_dch_s))
        } else {
            UmtsBoxState::Fach(packet.at_ns)
        };
    }
}

impl Machine for UmtsBox {
    fn packet(&mut self, packet: TracePacket, sink: &mut dyn RadioSink) {
        self.advance(packet.at_ns, sink);
        match self.place {
            UmtsBoxState::Idle => self.wake(packet, sink),
            UmtsBoxState::Promotion(_) | UmtsBoxState::Dch => self.emit(packet.at_ns, sink),
            UmtsBoxState::Fach(_) => {
                self.emit(packet.at_ns, sink);
                let overflows = self.overflows(packet);
                self.place = if overflows { UmtsBoxState::Dch } else { UmtsBoxState::Fach(packet.at_ns) };
            }
        }
        self.last_ns = packet.at_ns;
    }

    fn finish(&mut self, to_ns: i64, sink: &mut dyn RadioSink) {
        self.advance(to_ns, sink);
        self.emit(to_ns, sink);
    }

    fn lead_ns(&self) -> i64 {
        0
    }

    fn rest_ns(&self) -> i64 {
        nanoseconds(self.of.idle_dch_s) + nanoseconds(self.of.dch_timer_s) + nanoseconds(self.of.fach_timer_s)
    }
}
