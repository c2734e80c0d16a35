//! One direction of a link, as arithmetic: takes a packet and an instant, and returns the packet's outcome. No sockets, no clock.

use super::trace::Cursor;
use super::{Path, Rate};
use crate::link::trace::Trace;
use std::collections::VecDeque;
use std::sync::Arc;

const SECOND_NS: u128 = 1_000_000_000;
const BITS: u128 = 8;

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOutcome {
    /// It arrives.
    Due {
        /// The due time, in nanoseconds.
        at_ns: u64,
        /// The queueing time, in nanoseconds.
        queued_ns: u64,
    },
    /// Lost on the way.
    Lost,
    /// Dropped, for the queue was full.
    Overflowed,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Shaper {
    path: Path,
    chance: Chance,
    /// The times at which the waiting packets will have left the queue.
    departures_ns: VecDeque<u64>,
    /// The time at which the way into the link is free again.
    free_at_ns: u64,
    /// The arrival time of the last packet.
    last_due_ns: u64,
    cursor: Cursor,
    started_ns: Option<u64>,
}

impl Shaper {
    /// Creates a shaper with this seed.
    #[must_use]
    pub fn new(path: Path, seed: u64) -> Self {
        Self {
            path,
            chance: Chance(seed),
            departures_ns: VecDeque::new(),
            free_at_ns: 0,
            last_due_ns: 0,
            cursor: Cursor::default(),
            started_ns: None,
        }
    }

    /// Decides on a packet of this size that enters now. Instants never go back.
    pub fn offer(&mut self, now_ns: u64, bytes: usize) -> PacketOutcome {
        let started_ns = *self.started_ns.get_or_insert(now_ns);
        while self.departures_ns.front().is_some_and(|leaves| *leaves <= now_ns) {
            self.departures_ns.pop_front();
        }
        // Both are drawn for every packet, so that one change does not shift the luck of all that follow.
        let (luck, jitter) = (self.chance.share(), self.chance.share());
        if self.departures_ns.len() >= self.path.queue_packets {
            return PacketOutcome::Overflowed;
        }
        if luck < self.path.loss {
            return PacketOutcome::Lost;
        }
        let (starts_ns, left_ns) = self.departure(started_ns, now_ns, bytes);
        if left_ns > now_ns {
            self.departures_ns.push_back(left_ns);
        }
        let on_the_way = self.path.delay_ns + (jitter * self.path.jitter_ns as f64) as u64;
        self.last_due_ns = self.last_due_ns.max(left_ns + on_the_way);
        PacketOutcome::Due { at_ns: self.last_due_ns, queued_ns: starts_ns.saturating_sub(now_ns) }
    }

    /// Returns the times at which a packet begins to leave, and at which it has left.
    fn departure(&mut self, started_ns: u64, now_ns: u64, bytes: usize) -> (u64, u64) {
        let starts_ns = self.free_at_ns.max(now_ns);
        let left_ns = match &self.path.rate {
            Rate::Unlimited => starts_ns,
            Rate::BitsPerSecond(rate) => starts_ns + serialization_ns(bytes, *rate),
            Rate::Trace(trace) => {
                let trace: Arc<Trace> = Arc::clone(trace);
                started_ns + self.cursor.leave(&trace, starts_ns - started_ns, bytes as u64)
            }
        };
        self.free_at_ns = left_ns;
        (starts_ns, left_ns)
    }
}

/// Returns the serialization time of a number of bytes at a rate, in nanoseconds.
fn serialization_ns(bytes: usize, bits_per_second: u64) -> u64 {
    let time = bytes as u128 * BITS * SECOND_NS / u128::from(bits_per_second.max(1));
    u64::try_from(time).unwrap_or(u64::MAX / 4).min(u64::MAX / 4)
}

/// Repeatable chance (SplitMix64).
#[derive(Clone, Debug)]
struct Chance(u64);

impl Chance {
    /// A number from 0 up to, but not, 1.
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests;
