//! The number of streams a peer may have open, and how it changes while the connection is used.

use crate::policy::{OnExcess, Streams};
use crate::wire::{WireHandle, settings_max_streams};
use std::collections::VecDeque;

/// The stream limit of one connection: what was announced, and what the peer has acknowledged.
pub(super) struct StreamLimit {
    usual: u32,
    policy: Streams,
    announced: VecDeque<u32>,
    latest: u32,
    in_force: u32,
    acknowledged: u32,
}

impl StreamLimit {
    pub(super) fn new(usual: u32, policy: Option<Streams>) -> Self {
        let policy = policy.unwrap_or_default();
        let first = policy.initial.unwrap_or(usual);
        Self { usual, policy, announced: [first].into(), latest: first, in_force: u32::MAX, acknowledged: 0 }
    }

    pub(super) fn set_policy(&mut self, policy: Option<Streams>) {
        self.policy = policy.unwrap_or_default();
    }

    pub(super) fn on_excess(&self) -> OnExcess {
        self.policy.on_excess
    }

    /// Announces a limit, unless it is the one announced last.
    pub(super) fn announce(&mut self, limit: u32, wire: &WireHandle) {
        if limit != self.latest {
            self.latest = limit;
            self.announced.push_back(limit);
            wire.inject(&settings_max_streams(limit));
        }
    }

    /// Takes note of the acknowledgements so far; limits come into force in the order they were announced.
    pub(super) fn acknowledge(&mut self, total: u32) {
        while self.acknowledged < total {
            self.acknowledged += 1;
            self.in_force = self.announced.pop_front().unwrap_or(self.latest);
        }
    }

    pub(super) fn is_exceeded_by(&self, open: usize) -> bool {
        open > self.in_force as usize
    }

    pub(super) fn on_request(&mut self, seen: u64, wire: &WireHandle) {
        let due = self.policy.steps.iter().filter(|step| step.after_requests == seen).map(|step| step.limit);
        for limit in due.collect::<Vec<_>>() {
            self.announce(limit, wire);
        }
    }

    pub(super) fn on_outcome(&mut self, accepted: bool, wire: &WireHandle) {
        let after_reject = self.policy.after_reject;
        match (accepted, after_reject) {
            (false, Some(limit)) => self.announce(limit, wire),
            (true, _) if self.policy.initial.is_some() || after_reject.is_some() => {
                self.announce(self.usual, wire);
            }
            _ => {}
        }
    }
}
