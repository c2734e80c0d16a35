//! Packets on their way, in both directions.

use crate::link::{PacketOutcome, Shaper};
use crate::side::Side;
use std::collections::VecDeque;
use std::sync::Arc;

/// A packet on its way.
#[derive(Clone, Debug)]
pub(super) struct Moving {
    /// Who sent it.
    pub(super) from: Side,
    /// When it has to arrive, in nanoseconds.
    pub(super) due_ns: u64,
    pub(super) bytes: Arc<[u8]>,
}

/// Both directions. No packet overtakes another of its direction, so that two queues do what a heap would.
pub(super) struct Wire {
    shapers: [Shaper; 2],
    moving: [VecDeque<Moving>; 2],
}

impl Wire {
    /// Makes one from what decides about packets of the device, and of the server.
    pub(super) fn new(shapers: [Shaper; 2]) -> Self {
        Self { shapers, moving: [VecDeque::new(), VecDeque::new()] }
    }

    /// Decides about a packet, and takes it along if it is to arrive.
    pub(super) fn offer(&mut self, from: Side, now_ns: u64, bytes: &Arc<[u8]>) -> PacketOutcome {
        let outcome = self.shapers[from.index()].offer(now_ns, bytes.len());
        if let PacketOutcome::Due { at_ns, .. } = outcome {
            self.moving[from.index()].push_back(Moving { from, due_ns: at_ns, bytes: Arc::clone(bytes) });
        }
        outcome
    }

    /// When the next packet has to arrive.
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.moving.iter().filter_map(|queue| queue.front()).map(|packet| packet.due_ns).min()
    }

    /// Takes the packet off that had to arrive first, if it had to by now.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<Moving> {
        let due = |queue: &VecDeque<Moving>| queue.front().map_or(u64::MAX, |packet| packet.due_ns);
        let first = usize::from(due(&self.moving[1]) < due(&self.moving[0]));
        (due(&self.moving[first]) <= now_ns).then(|| self.moving[first].pop_front()).flatten()
    }
}
