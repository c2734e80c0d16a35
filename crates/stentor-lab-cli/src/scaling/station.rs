//! A queueing station, for processors or a lock: work waits in the order of its arrival.

use std::collections::VecDeque;

/// Some servers of a station, and the work that waits for one.
#[derive(Debug)]
pub(super) struct Station<W> {
    places: u32,
    busy: u32,
    waiting: VecDeque<W>,
    /// Time of the last change of `busy`.
    changed_ns: u64,
    /// Busy time of all places together, in nanoseconds.
    worked_ns: u64,
}

impl<W> Station<W> {
    pub(super) const fn new(places: u32) -> Self {
        Self { places, busy: 0, waiting: VecDeque::new(), changed_ns: 0, worked_ns: 0 }
    }

    /// Takes work; returns it if a place is free for it now.
    pub(super) fn take(&mut self, work: W, now_ns: u64) -> Option<W> {
        if self.busy == self.places {
            self.waiting.push_back(work);
            return None;
        }
        self.count(now_ns);
        self.busy += 1;
        Some(work)
    }

    /// Frees a place; returns the work that has it next.
    pub(super) fn free(&mut self, now_ns: u64) -> Option<W> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.count(now_ns);
            self.busy -= 1;
        }
        next
    }

    /// Returns the share of the time since the beginning in which its places were busy, 0 to 1.
    pub(super) fn busy(&self, now_ns: u64) -> f64 {
        let worked = self.worked_ns + u64::from(self.busy) * (now_ns - self.changed_ns);
        worked as f64 / (now_ns as f64 * f64::from(self.places))
    }

    fn count(&mut self, now_ns: u64) {
        self.worked_ns += u64::from(self.busy) * (now_ns - self.changed_ns);
        self.changed_ns = now_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_waits_until_a_place_is_free_and_its_time_is_counted() {
        let mut station = Station::new(1);
        assert_eq!(station.take("first", 0), Some("first"));
        assert_eq!(station.take("second", 10), None);
        assert_eq!(station.free(40), Some("second"));
        assert_eq!(station.free(60), None);
        assert!((station.busy(120) - 0.5).abs() < 1e-9);
    }
}
