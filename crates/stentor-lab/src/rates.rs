//! Rates: their bounds, their fairness, and their course in time.

mod in_flight;

use serde::Serialize;

pub use in_flight::{InFlightLog, RateBound};

/// Returns the highest rate that `inflight_requests` allow if each request takes `mean_seconds`, in pushes per second (Little's law).
#[must_use]
pub fn bound_per_second(inflight_requests: f64, mean_seconds: f64) -> f64 {
    inflight_requests / mean_seconds
}

/// Returns the mean time that a push occupies one of `inflight_requests` slots at a rate, in seconds (Little's law).
#[must_use]
pub fn mean_seconds(inflight_requests: f64, per_second: f64) -> f64 {
    inflight_requests / per_second
}

/// Returns Jain's index of fairness: 1 if all shares are equal, 1/n if one has everything; `None` without shares.
#[must_use]
pub fn fairness(shares: &[f64]) -> Option<f64> {
    let (sum, squares) =
        shares.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// The number of ended deliveries over time, as sampled.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ProgressCurve {
    points: Vec<(f64, u64)>,
}

impl ProgressCurve {
    /// Adds a sample. Time and count never decrease.
    pub fn note(&mut self, seconds: f64, ended: u64) {
        let (last_seconds, last_ended) = self.points.last().copied().unwrap_or((0.0, 0));
        self.points.push((seconds.max(last_seconds), ended.max(last_ended)));
    }

    /// Returns the time at which the share `part` (0..=1) of `whole` had ended, by linear interpolation between two samples; `None` if that
    /// share was never reached.
    #[must_use]
    pub fn seconds_until(&self, part: f64, whole: u64) -> Option<f64> {
        let wanted = part.clamp(0.0, 1.0) * whole as f64;
        let mut before = (0.0, 0.0);
        for (seconds, ended) in &self.points {
            let ended = *ended as f64;
            if ended >= wanted {
                let grown = ended - before.1;
                let share = if grown > 0.0 { (wanted - before.1) / grown } else { 1.0 };
                return Some(before.0 + (seconds - before.0) * share.clamp(0.0, 1.0));
            }
            before = (*seconds, ended);
        }
        None
    }

    /// Returns the rate between the first and the last quarter of `whole`, so that ramp-up and ramp-down have no influence.
    #[must_use]
    pub fn middle_per_second(&self, whole: u64) -> Option<f64> {
        let span = self.seconds_until(0.75, whole)? - self.seconds_until(0.25, whole)?;
        (span > 0.0).then(|| whole as f64 / 2.0 / span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn twenty_places_and_thirty_five_milliseconds_allow_571_pushes_a_second() {
        assert!((bound_per_second(20.0, 0.035) - 571.43).abs() < 0.01);
        // Table T9 of the study of 2017: 566 pushes a second with 20 threads.
        assert!((mean_seconds(20.0, 566.0) - 0.0353).abs() < 0.0001);
    }

    #[test]
    fn fairness_is_one_for_equal_shares_and_the_smallest_when_one_has_everything() {
        assert_eq!(fairness(&[3.0; 5]), Some(1.0));
        assert_eq!(fairness(&[7.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(fairness(&[]), None);
        assert_eq!(fairness(&[0.0]), None);
    }

    #[test]
    fn times_are_read_between_two_looks() {
        let mut progress = ProgressCurve::default();
        for (seconds, ended) in [(1.0, 0), (2.0, 50), (4.0, 100)] {
            progress.note(seconds, ended);
        }
        assert_eq!(progress.seconds_until(0.25, 100), Some(1.5));
        assert_eq!(progress.seconds_until(1.0, 100), Some(4.0));
        assert_eq!(progress.seconds_until(1.0, 101), None);
        assert_eq!(progress.middle_per_second(100), Some(50.0 / 1.5));
    }

    proptest! {
        #[test]
        fn fairness_lies_between_one_nth_and_one(shares in prop::collection::vec(0.001..1e6_f64, 1..40)) {
            let index = fairness(&shares).expect("there are shares");
            prop_assert!(index <= 1.0 + 1e-9 && index >= 1.0 / shares.len() as f64 - 1e-9);
        }

        #[test]
        fn a_larger_share_is_never_reached_earlier(
            steps in prop::collection::vec((0.0..10.0_f64, 0..1000_u64), 1..30), a in 0.0..=1.0_f64, b in 0.0..=1.0_f64,
        ) {
            let (mut progress, mut seconds, mut ended) = (ProgressCurve::default(), 0.0, 0);
            for (later, more) in steps {
                seconds += later;
                ended += more;
                progress.note(seconds, ended);
            }
            let (low, high) = (progress.seconds_until(a.min(b), ended), progress.seconds_until(a.max(b), ended));
            prop_assert!(low.expect("reached") <= high.expect("reached") + 1e-9);
        }
    }
}
