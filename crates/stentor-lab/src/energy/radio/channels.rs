//! The channels of 3G: a dedicated and a shared one, the timers between them, and queues of bytes.

use super::super::trace::TracePacket;
use super::timeline::TimelineCursor;
use super::{RadioSink, RadioState};

/// Queued or counted bytes of one direction, and the time of the last.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Heap {
    pub(super) bytes: f64,
    at_ns: i64,
}

impl Heap {
    /// Clears the bytes if none has arrived for longer than `after_ns`.
    pub(super) fn expire(&mut self, at_ns: i64, after_ns: i64) {
        if at_ns - self.at_ns > after_ns {
            self.bytes = 0.0;
        }
    }

    pub(super) fn add(&mut self, packet: TracePacket) {
        self.bytes += f64::from(packet.bytes);
        self.at_ns = packet.at_ns;
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum ChannelState {
    Idle,
    /// Promotion to the dedicated channel until an instant, with its power and the instant from which the timer of that channel counts.
    Promotion {
        end_ns: i64,
        watt: f64,
        timer_from_ns: i64,
    },
    /// The dedicated channel, with the instant from which its timer counts.
    Dch(i64),
    /// The shared channel, with the instant from which its timer counts.
    Fach(i64),
}

/// The state of a 3G radio.
pub(super) struct Channels {
    pub(super) cursor: TimelineCursor,
    pub(super) place: ChannelState,
    /// Bytes queued on the shared channel, by direction.
    pub(super) waiting: [Heap; 2],
    pub(super) idle_w: f64,
    pub(super) dch_w: f64,
    pub(super) fach_w: f64,
    pub(super) dch_timer_ns: i64,
    pub(super) fach_timer_ns: i64,
}

impl Channels {
    /// Follows the timers until an instant; the state at that instant is not yet reported.
    pub(super) fn advance(&mut self, to_ns: i64, sink: &mut dyn RadioSink) {
        loop {
            let (end, next) = match self.place {
                ChannelState::Idle => return,
                ChannelState::Promotion { end_ns, timer_from_ns, .. } => {
                    (end_ns, ChannelState::Dch(timer_from_ns))
                }
                ChannelState::Dch(since) => {
                    let end = self.cursor.at_ns.max(since + self.dch_timer_ns);
                    (end, ChannelState::Fach(end))
                }
                ChannelState::Fach(since) => (since + self.fach_timer_ns, ChannelState::Idle),
            };
            if end >= to_ns {
                return;
            }
            self.emit(end, sink);
            self.waiting = [Heap::default(); 2];
            self.place = next;
        }
    }

    /// Reports the current state until an instant. Without this, a radio that packets keep in one state would never report it.
    pub(super) fn emit(&mut self, to_ns: i64, sink: &mut dyn RadioSink) {
        let (state, watt) = match self.place {
            ChannelState::Idle => (RadioState::Idle, self.idle_w),
            ChannelState::Promotion { watt, .. } => (RadioState::Promotion, watt),
            ChannelState::Dch(_) => (RadioState::Dch, self.dch_w),
            ChannelState::Fach(_) => (RadioState::Fach, self.fach_w),
        };
        self.cursor.until(to_ns, state, watt, sink);
    }

    /// Reports all states until an instant, after which no packet follows.
    pub(super) fn finish(&mut self, to_ns: i64, sink: &mut dyn RadioSink) {
        self.advance(to_ns, sink);
        self.emit(to_ns, sink);
    }
}
