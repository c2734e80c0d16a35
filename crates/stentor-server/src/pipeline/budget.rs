//! How many deliveries may be leased and not settled: the bound of the duplicates of one crash.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stentor_core::chunk::Class;

/// The bound of one node, shared by all its fleets.
pub(crate) struct Budget {
    used: AtomicU64,
    max: u64,
    bulk_max: u64,
}

/// What one fleet has unsettled.
#[derive(Default)]
pub(crate) struct Unsettled {
    bulk: AtomicU64,
    urgent: AtomicU64,
    settled: AtomicU64,
}

impl Budget {
    /// Allows `max` deliveries, of which audiences may use `bulk_max`.
    pub(crate) fn new(max: u64, bulk_max: u64) -> Arc<Self> {
        Arc::new(Self { used: AtomicU64::new(0), max, bulk_max })
    }

    /// Takes `count` deliveries if they fit; the first always fits, lest nothing move.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        fleet: &Arc<Unsettled>,
        class: Class,
        count: u64,
    ) -> Option<Reservation> {
        let max = if class == Class::Bulk { self.bulk_max } else { self.max };
        let fit = |used: u64| (used == 0 || used + count <= max).then_some(used + count);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, fit).ok()?;
        fleet.of(class).fetch_add(count, Ordering::AcqRel);
        Some(Reservation { budget: self.clone(), fleet: fleet.clone(), class, count })
    }

    /// Counts what is in use.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Acquire)
    }
}

impl Unsettled {
    /// Counts what a class has unsettled.
    pub(crate) fn count(&self, class: Class) -> u64 {
        self.of(class).load(Ordering::Acquire)
    }

    /// Counts what both have.
    pub(crate) fn total(&self) -> u64 {
        self.count(Class::Bulk) + self.count(Class::Urgent)
    }

    /// Counts the deliveries of audiences given back so far.
    pub(crate) fn settled(&self) -> u64 {
        self.settled.load(Ordering::Acquire)
    }

    const fn of(&self, class: Class) -> &AtomicU64 {
        match class {
            Class::Bulk => &self.bulk,
            Class::Urgent => &self.urgent,
        }
    }
}

/// Deliveries taken from the budget; given back when dropped.
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    fleet: Arc<Unsettled>,
    class: Class,
    count: u64,
}

impl Reservation {
    /// Corrects the count to what the chunk really holds.
    pub(crate) fn resize(&mut self, count: u64) {
        let grown = count.saturating_sub(self.count);
        let shrunk = self.count.saturating_sub(count);
        for used in [&self.budget.used, self.fleet.of(self.class)] {
            used.fetch_add(grown, Ordering::AcqRel);
            used.fetch_sub(shrunk, Ordering::AcqRel);
        }
        self.count = count;
    }

    /// Gives it back as settled work.
    pub(crate) fn settled(self) {
        if self.class == Class::Bulk {
            self.fleet.settled.fetch_add(self.count, Ordering::AcqRel);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.count, Ordering::AcqRel);
        self.fleet.of(self.class).fetch_sub(self.count, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audiences_leave_room_for_single_messages() {
        let (budget, fleet) = (Budget::new(100, 80), Arc::new(Unsettled::default()));
        let bulk = budget.reserve(&fleet, Class::Bulk, 80).expect("fits");
        assert!(budget.reserve(&fleet, Class::Bulk, 1).is_none());
        let urgent = budget.reserve(&fleet, Class::Urgent, 20).expect("fits");
        assert!(budget.reserve(&fleet, Class::Urgent, 1).is_none());
        drop((bulk, urgent));
        assert_eq!((budget.used(), fleet.total()), (0, 0));
    }

    #[test]
    fn a_reservation_follows_the_real_size_and_is_given_back_whole() {
        let (budget, fleet) = (Budget::new(100, 80), Arc::new(Unsettled::default()));
        let mut held = budget.reserve(&fleet, Class::Bulk, 50).expect("fits");
        held.resize(3);
        assert_eq!((budget.used(), fleet.count(Class::Bulk)), (3, 3));
        held.settled();
        assert_eq!((budget.used(), fleet.total(), fleet.settled()), (0, 0, 3));
    }

    #[test]
    fn a_chunk_larger_than_the_budget_passes_alone() {
        let (budget, fleet) = (Budget::new(10, 10), Arc::new(Unsettled::default()));
        let _alone = budget.reserve(&fleet, Class::Bulk, 50).expect("the first always fits");
        assert!(budget.reserve(&fleet, Class::Urgent, 1).is_none());
    }
}
