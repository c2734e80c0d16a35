//! The outcomes of a batch, as its push services report them.

use std::time::Duration;

use parking_lot::Mutex;
use stentor_core::outcome::Outcome;
use tokio::time::{Instant, sleep};

/// Most outcomes are known when at most one in this number is missing.
const MISSING_PART: usize = 3;
/// Time without a new outcome after which the missing ones are late.
const STALL: Duration = Duration::from_millis(50);

/// The outcomes that are known so far.
pub(super) struct Progress(Mutex<KnownOutcomes>);

struct KnownOutcomes {
    outcomes: Vec<Option<Outcome>>,
    known: usize,
    changed_at: Instant,
}

impl Progress {
    pub(super) fn new(count: usize) -> Self {
        Self(Mutex::new(KnownOutcomes { outcomes: vec![None; count], known: 0, changed_at: Instant::now() }))
    }

    /// Records the outcomes of some positions; a known outcome stays as it is.
    pub(super) fn put(&self, outcomes: impl IntoIterator<Item = (usize, Outcome)>) {
        let mut known = self.0.lock();
        for (at, outcome) in outcomes {
            if known.outcomes[at].is_none() {
                known.outcomes[at] = Some(outcome);
                known.known += 1;
            }
        }
        known.changed_at = Instant::now();
    }

    /// Waits until most outcomes are known and no more come for a while.
    pub(super) async fn stalled(&self) {
        loop {
            let (is_most, since) = {
                let known = self.0.lock();
                let left = known.outcomes.len() - known.known;
                (left * MISSING_PART <= known.outcomes.len(), known.changed_at.elapsed())
            };
            if is_most && since >= STALL {
                return;
            }
            sleep(STALL.saturating_sub(since).max(STALL / 4)).await;
        }
    }

    /// Returns the outcomes so far.
    pub(super) fn so_far(&self) -> Vec<Option<Outcome>> {
        self.0.lock().outcomes.clone()
    }

    /// Returns every outcome; missing ones are unknown.
    pub(super) fn into_all(self) -> Vec<Outcome> {
        let outcomes = self.0.into_inner().outcomes;
        outcomes.into_iter().map(|outcome| outcome.unwrap_or(Outcome::Unknown)).collect()
    }
}
