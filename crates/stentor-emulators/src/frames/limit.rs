//! The stream limit: the announced value, and the value that the peer has acknowledged and is held to.

use std::collections::VecDeque;

pub(super) struct Limit {
    announced: VecDeque<u32>,
    latest: u32,
    in_force: u32,
}

impl Limit {
    pub(super) fn new(first: u32) -> Self {
        Self { announced: [first].into(), latest: first, in_force: u32::MAX }
    }

    /// Sets a new limit. Returns true if it must be announced.
    pub(super) fn announce(&mut self, limit: u32) -> bool {
        if limit == self.latest {
            return false;
        }
        self.latest = limit;
        self.announced.push_back(limit);
        true
    }

    /// Limits come into force in the order they were announced.
    pub(super) fn acknowledge(&mut self) {
        self.in_force = self.announced.pop_front().unwrap_or(self.latest);
    }

    pub(super) fn is_exceeded_by(&self, open: usize) -> bool {
        open > self.in_force as usize
    }
}
