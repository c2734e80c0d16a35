//! Packets on their way, in both directions.

use crate::link::{PacketOutcome, Shaper};
use crate::side::Side;
use std::collections::VecDeque;
use std::sync::Arc;

/// A packet on its way.
#[derive(Clone, Debug)]
pub(super) struct PacketInFlight {
    /// The sender.
    pub(super) from: Side,
    /// The due time of its arrival, in nanoseconds.
    pub(super) due_ns: u64,
    pub(super) bytes: Arc<[u8]>,
}

/// Both directions. No packet overtakes another of its direction, so two queues suffice instead of a heap.
pub(super) struct Wire {
    shapers: [Shaper; 2],
    in_flight: [VecDeque<PacketInFlight>; 2],
}

impl Wire {
    /// Creates a wire from the shapers of the device's packets and of the server's.
    pub(super) fn new(shapers: [Shaper; 2]) -> Self {
        Self { shapers, in_flight: [VecDeque::new(), VecDeque::new()] }
    }

    /// Decides about a packet, and takes it along if it is to arrive.
    pub(super) fn offer(&mut self, from: Side, now_ns: u64, bytes: &Arc<[u8]>) -> PacketOutcome {
        let outcome = self.shapers[from.index()].offer(now_ns, bytes.len());
        if let PacketOutcome::Due { at_ns, .. } = outcome {
            self.in_flight[from.index()].push_back(PacketInFlight {
                from,
                due_ns: at_ns,
                bytes: Arc::clone(bytes),
            });
        }
        outcome
    }

    /// Returns the due time of the next packet.
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.in_flight.iter().filter_map(|queue| queue.front()).map(|packet| packet.due_ns).min()
    }

    /// Removes the packet that is due first, if it is due by now.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<PacketInFlight> {
        let due = |queue: &VecDeque<PacketInFlight>| queue.front().map_or(u64::MAX, |packet| packet.due_ns);
        let first = usize::from(due(&self.in_flight[1]) < due(&self.in_flight[0]));
        (due(&self.in_flight[first]) <= now_ns).then(|| self.in_flight[first].pop_front()).flatten()
    }
}
