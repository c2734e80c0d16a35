//! Slots for requests in flight: their occupation during a test, and the resulting bound of the rate.

use serde::{Deserialize, Serialize};

/// Occupied share from which the number of slots limits the rate.
const FULL_SHARE: f64 = 0.9;
/// Occupied share below which the supply limits the rate.
const STARVED_SHARE: f64 = 0.7;

/// The bound of a rate, by Little's law.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateBound {
    /// Slots are occupied nearly all the time: more slots or faster responses would raise the rate.
    Consumers,
    /// Slots are empty: the supply (producers, queue, the machine) is too slow.
    Supply,
    /// Both have an influence.
    Both,
}

impl RateBound {
    /// Determines the bound from the share of occupied slots.
    #[must_use]
    pub fn of(taken: f64, places: f64) -> Option<Self> {
        let share = (places > 0.0).then(|| taken / places)?;
        Some(match share {
            share if share >= FULL_SHARE => Self::Consumers,
            share if share < STARVED_SHARE => Self::Supply,
            _ => Self::Both,
        })
    }

    /// Returns the word for display.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Consumers => "the requests in flight",
            Self::Supply => "the supply of deliveries",
            Self::Both => "both",
        }
    }
}

/// Samples of the number of requests in flight, each with the progress of the test.
#[derive(Debug, Clone, Default)]
pub struct InFlightLog {
    looks: Vec<InFlightSample>,
}

#[derive(Debug, Clone, Copy)]
struct InFlightSample {
    seconds: f64,
    ended: u64,
    taken: u64,
}

impl InFlightLog {
    /// Adds a sample.
    pub fn note(&mut self, seconds: f64, ended: u64, taken: u64) {
        self.looks.push(InFlightSample { seconds, ended, taken });
    }

    /// Returns the mean of the samples between the first and the last tenth of `whole`, each weighted by the time since the previous one;
    /// `None` with fewer than three of them.
    #[must_use]
    pub fn mean(&self, whole: u64) -> Option<f64> {
        let middle = whole / 10..=whole - whole / 10;
        let pairs = self.looks.windows(2).filter(|pair| middle.contains(&pair[1].ended));
        let weighed: Vec<(f64, f64)> =
            pairs.map(|pair| (pair[1].seconds - pair[0].seconds, pair[1].taken as f64)).collect();
        let seconds: f64 = weighed.iter().map(|(seconds, _)| seconds).sum();
        let sum: f64 = weighed.iter().map(|(seconds, taken)| seconds * taken).sum();
        (weighed.len() >= 3 && seconds > 0.0).then(|| sum / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn empty_places_speak_against_the_consumers_as_the_limit() {
        assert_eq!(RateBound::of(19.0, 20.0), Some(RateBound::Consumers));
        assert_eq!(RateBound::of(16.0, 20.0), Some(RateBound::Both));
        assert_eq!(RateBound::of(5.0, 100.0), Some(RateBound::Supply));
        assert_eq!(RateBound::of(5.0, 0.0), None);
    }

    #[test]
    fn neither_the_start_nor_the_end_counts_and_long_waits_count_more() {
        let mut places = InFlightLog::default();
        for (seconds, ended, taken) in
            [(0.0, 0, 1), (1.0, 5, 1), (2.0, 20, 10), (3.0, 50, 10), (6.0, 80, 20), (7.0, 99, 1)]
        {
            places.note(seconds, ended, taken);
        }
        // 1 s with 10, 1 s with 10, 3 s with 20.
        assert_eq!(places.mean(100), Some(16.0));
        assert_eq!(places.mean(1_000_000), None, "too few looks");
    }

    proptest! {
        #[test]
        fn the_mean_is_never_more_than_the_most(
            looks in prop::collection::vec((0.001..5.0_f64, 0..50_u64, 0..200_u64), 1..40),
        ) {
            let (mut places, mut seconds, mut ended) = (InFlightLog::default(), 0.0, 0);
            for (later, more, taken) in &looks {
                seconds += later;
                ended += more;
                places.note(seconds, ended, *taken);
            }
            let most = looks.iter().map(|(_, _, taken)| *taken).max().unwrap_or(0) as f64;
            prop_assert!(places.mean(ended).is_none_or(|mean| mean <= most * (1.0 + 1e-9)));
        }
    }
}
