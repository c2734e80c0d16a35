//! The share of recent responses that demanded a pause. A single one concerns its own request; a majority indicates a problem of the peer.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Fewest such responses that indicate a problem of the peer.
const MIN_ANSWERS: usize = 10;
/// Number of responses remembered. Beyond it, earlier ones count half.
const WINDOW_MAX_ANSWERS: usize = 256;

/// Counts of responses. Accessed without a lock: a lost update only shifts the next decision.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    answers: AtomicUsize,
    halting: AtomicUsize,
}

impl Waits {
    /// Counts responses, `halting` of which demanded a pause. Returns true if at least half of the recent ones did.
    pub(crate) fn note(&self, answers: usize, halting: usize) -> bool {
        let mut all = self.answers.load(Relaxed) + answers;
        let mut halted = self.halting.load(Relaxed) + halting;
        let are_most = halted >= MIN_ANSWERS && 2 * halted >= all;
        while all > WINDOW_MAX_ANSWERS {
            (all, halted) = (all / 2, halted.div_ceil(2));
        }
        self.answers.store(all, Relaxed);
        self.halting.store(if all == 0 { 0 } else { halted.min(all) }, Relaxed);
        are_most && halting > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_that_ask_to_wait_among_many_answers_do_not_speak_for_the_peer() {
        let waits = Waits::default();
        assert!((0..10_000).all(|_| !waits.note(50, 10)));
    }

    #[test]
    fn ten_that_ask_to_wait_and_nothing_else_speak_for_the_peer() {
        let waits = Waits::default();
        assert_eq!((0..10).filter(|_| waits.note(1, 1)).count(), 1, "the tenth");
    }

    #[test]
    fn a_peer_that_was_well_for_long_is_heard_soon_when_it_asks_everything_to_wait() {
        let waits = Waits::default();
        (0..1_000).for_each(|_| assert!(!waits.note(1_000, 0)));
        let until = (0..1_000).position(|_| waits.note(1, 1)).expect("heard");
        assert!(until <= WINDOW_MAX_ANSWERS, "{until}");
        assert!(!waits.note(1_000, 0), "what is well halts nothing");
    }
}
