//! Counters of the engine and its capture.

use super::wire::PacketInFlight;
use crate::capture::{CAPTURE_MAX_BYTES, Capture};
use crate::lateness::LatenessHistogram;
use crate::link::PacketOutcome;
use crate::monotonic::epoch_ns;
use crate::packet::{Note, Packet};
use crate::side::Side;
use serde::Serialize;
use std::sync::Arc;

/// The traffic of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Packets that entered the link.
    pub sent_packets: u64,
    /// Their bytes from the IP header on.
    pub sent_bytes: u64,
    /// Packets that left it at the other end.
    pub received_packets: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets lost on the way.
    pub lost_packets: u64,
    /// Packets that found the queue full.
    pub overflowed_packets: u64,
    /// Packets that the other side's interface did not take.
    pub refused_packets: u64,
}

impl Traffic {
    /// Packets that have entered and are neither there nor lost.
    #[must_use]
    pub const fn on_the_way(&self) -> u64 {
        let done = self.received_packets + self.lost_packets + self.overflowed_packets + self.refused_packets;
        self.sent_packets.saturating_sub(done)
    }
}

/// Counts, lateness, and the current capture.
#[derive(Debug, Default)]
pub(super) struct EngineTotals {
    /// By the side that sends.
    pub(super) traffic: [Traffic; 2],
    pub(super) lateness: LatenessHistogram,
    capture: Option<Capture>,
    kept_bytes: usize,
}

impl EngineTotals {
    pub(super) fn begin_capture(&mut self) {
        self.capture = Some(Capture { epoch_ns: epoch_ns(), is_complete: true, ..Capture::default() });
        self.kept_bytes = 0;
    }

    pub(super) fn end_capture(&mut self) -> Capture {
        self.capture.take().unwrap_or_default()
    }

    /// Writes down a packet that came in.
    pub(super) fn entered(&mut self, from: Side, time_ns: u64, outcome: PacketOutcome, bytes: &Arc<[u8]>) {
        let traffic = &mut self.traffic[from.index()];
        traffic.sent_packets += 1;
        traffic.sent_bytes += bytes.len() as u64;
        let note = match outcome {
            PacketOutcome::Due { queued_ns, .. } => Note::Sent { queued_ns },
            PacketOutcome::Lost => {
                traffic.lost_packets += 1;
                Note::Lost
            }
            PacketOutcome::Overflowed => {
                traffic.overflowed_packets += 1;
                Note::Overflowed
            }
        };
        self.keep(Packet { at: from, from, time_ns, note, bytes: Arc::clone(bytes) });
    }

    /// Writes down a packet that was handed on.
    pub(super) fn left(&mut self, packet: &PacketInFlight, time_ns: u64, is_written: bool) {
        let late_ns = time_ns.saturating_sub(packet.due_ns);
        self.lateness.add(late_ns);
        let traffic = &mut self.traffic[packet.from.index()];
        if !is_written {
            traffic.refused_packets += 1;
            return;
        }
        traffic.received_packets += 1;
        traffic.received_bytes += packet.bytes.len() as u64;
        let (at, note) = (packet.from.other(), Note::Received { late_ns });
        self.keep(Packet { at, from: packet.from, time_ns, note, bytes: Arc::clone(&packet.bytes) });
    }

    fn keep(&mut self, packet: Packet) {
        let Some(capture) = &mut self.capture else { return };
        // Both ends share the bytes, so this counts them twice and the limit is met early rather than late.
        self.kept_bytes += packet.bytes.len() + size_of::<Packet>();
        if self.kept_bytes > CAPTURE_MAX_BYTES {
            capture.not_kept += 1;
            capture.is_complete = false;
        } else {
            capture.packets.push(packet);
        }
    }
}
