//! The number of registrations given to one transaction.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The smallest number on any machine.
const MIN_COUNT: usize = 256;
/// The largest number on any machine.
const MAX_COUNT: usize = 16_384;

/// The number of registrations that recently fit into a transaction's time, at most doubled. All given registrations are looked up first,
/// so a slow machine, or a registry that is not in memory, must not be given the rest of a batch again and again.
#[derive(Debug)]
pub(super) struct Pace(AtomicUsize);

impl Default for Pace {
    fn default() -> Self {
        Self(AtomicUsize::new(MAX_COUNT))
    }
}

impl Pace {
    /// Returns the first registrations, as many as one transaction is given.
    pub(super) fn first<'a, T>(&self, some: &'a [T]) -> &'a [T] {
        &some[..some.len().min(self.0.load(Ordering::Relaxed))]
    }

    /// Records the number of registrations that a transaction took of those given.
    pub(super) fn note(&self, given: usize, taken: usize) {
        // Only a transaction that was given all it may take shows that it could take more.
        if taken < given || given >= self.0.load(Ordering::Relaxed) {
            self.0.store((2 * taken).clamp(MIN_COUNT, MAX_COUNT), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_slow_machine_takes_is_what_it_is_given_and_a_quick_one_gets_all_again() {
        let (pace, many) = (Pace::default(), vec![(); 2 * MAX_COUNT]);
        assert_eq!(pace.first(&many).len(), MAX_COUNT);
        pace.note(MAX_COUNT, 1);
        assert_eq!(pace.first(&many).len(), MIN_COUNT);
        pace.note(10, 10);
        assert_eq!(pace.first(&many).len(), MIN_COUNT, "a few tell nothing");
        for _ in 0..6 {
            let given = pace.first(&many).len();
            pace.note(given, given);
        }
        assert_eq!(pace.first(&many).len(), MAX_COUNT);
    }
}
