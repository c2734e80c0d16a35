//! The parts of an attempt on which the meaning of its answer depends.

use std::time::Duration;

use stentor_core::ports::provider::Batch;

/// An attempt, as far as the meaning of its answer depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// True if the push service answered an earlier attempt of the delivery.
    pub answered_before: bool,
    /// The rest of the message's life; zero for a ttl of 0, which allows one attempt.
    pub left: Duration,
}

impl Attempt {
    /// Returns the attempt that all deliveries of a batch make.
    pub(crate) fn of(batch: &Batch) -> Self {
        let has_one = batch.message.spec.ttl.as_seconds() == 0;
        let left = if has_one { Duration::ZERO } else { batch.message.expires_at().since(batch.now) };
        Self { answered_before: batch.answered_before, left }
    }

    /// Returns true if a retry after this wait leaves the message as much time again.
    pub(crate) fn can_wait(self, wait: Duration) -> bool {
        self.left >= wait.saturating_mul(2)
    }
}
