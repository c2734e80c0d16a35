//! The queue of requests that wait for a stream, in sending order.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::work::{Run, Work};

/// Most requests of one batch that a connection takes at once.
const PART_MAX_REQUESTS: usize = 64;
/// Requests of one batch that go before the next batch gets its turn. Batches that advanced all at once would all end late: their responses
/// could not be settled, and would be in doubt after a crash.
const TURN_REQUESTS: usize = 1_024;
/// A batch of at most this size goes before larger ones, as long as small batches use at most half of the room.
const SMALL_BATCH_MAX_REQUESTS: usize = 16;

#[derive(Default)]
pub(super) struct RunQueue {
    /// Requests to send again, before all others.
    again: VecDeque<Run>,
    small: VecDeque<Run>,
    large: VecDeque<Run>,
    /// Total number of requests in the queues.
    waiting: usize,
}

impl RunQueue {
    /// Returns the number of waiting requests.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn has_large(&self) -> bool {
        !self.large.is_empty()
    }

    /// Returns true if requests of a batch wait.
    pub(super) fn holds(&self, work: &Arc<Work>) -> bool {
        let mut queued = self.again.iter().chain(&self.small).chain(&self.large);
        queued.any(|run| Arc::ptr_eq(&run.work, work))
    }

    /// Adds a whole batch.
    pub(super) fn push(&mut self, run: Run) {
        self.waiting += run.len();
        // Decided by the whole batch: a large batch with a small rest has had its turns already.
        let queue = if run.len() <= SMALL_BATCH_MAX_REQUESTS { &mut self.small } else { &mut self.large };
        queue.push_back(run);
    }

    /// Adds a run that was taken before and goes first.
    pub(super) fn push_again(&mut self, run: Run) {
        self.waiting += run.len();
        self.again.push_back(run);
    }

    /// Takes up to `most` requests of one batch. Batches take turns, so that none is stuck behind a very large one.
    pub(super) fn pop(&mut self, most: usize, small_first: bool) -> Option<Run> {
        let (one, other) =
            if small_first { (&mut self.small, &mut self.large) } else { (&mut self.large, &mut self.small) };
        let queue = [&mut self.again, one, other].into_iter().find(|queue| !queue.is_empty())?;
        let mut run = queue.pop_front()?;
        // Turns end at multiples, so that a batch taken in odd parts still ends its turn.
        let left_of_turn = TURN_REQUESTS - run.from as usize % TURN_REQUESTS;
        let front = run.split(most.min(PART_MAX_REQUESTS).min(left_of_turn));
        if run.len() > 0 && front.len() == left_of_turn {
            queue.push_back(run);
        } else if run.len() > 0 {
            queue.push_front(run);
        }
        // Every removal updates this count under the same lock, because `spread` opens connections for it.
        self.waiting -= front.len();
        Some(front)
    }

    /// Removes the waiting requests of a batch.
    pub(super) fn remove(&mut self, work: &Arc<Work>) -> Vec<Run> {
        let mut removed = Vec::new();
        for queue in [&mut self.again, &mut self.small, &mut self.large] {
            let (of_work, rest): (VecDeque<Run>, _) =
                std::mem::take(queue).into_iter().partition(|run| Arc::ptr_eq(&run.work, work));
            *queue = rest;
            removed.extend(of_work);
        }
        self.waiting -= removed.iter().map(Run::len).sum::<usize>();
        removed
    }

    /// Removes all waiting requests.
    pub(super) fn take_all(&mut self) -> Vec<Run> {
        self.waiting = 0;
        let queues = [&mut self.again, &mut self.small, &mut self.large];
        queues.into_iter().flat_map(std::mem::take).collect()
    }
}

#[cfg(test)]
pub(super) mod tests;
