//! Places for requests in flight: how many were taken while a test ran, and what that says of its limit.

use serde::{Deserialize, Serialize};

/// From this share of taken places on, the places are what holds the rate.
const FULL_SHARE: f64 = 0.9;
/// Below this share it is what fills them.
const STARVED_SHARE: f64 = 0.7;

/// What holds a rate, by Little's law.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateBound {
    /// The places are taken nearly all the time: more of them, or sooner answers, would raise the rate.
    Consumers,
    /// Places stand empty: what fills them (producers, queue, the machine) is too slow.
    Supply,
    /// Both weigh in.
    Both,
}

impl RateBound {
    /// Judges by the share of places that were taken.
    #[must_use]
    pub fn of(taken: f64, places: f64) -> Option<Self> {
        let share = (places > 0.0).then(|| taken / places)?;
        Some(match share {
            share if share >= FULL_SHARE => Self::Consumers,
            share if share < STARVED_SHARE => Self::Supply,
            _ => Self::Both,
        })
    }

    /// Returns the words for people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Consumers => "the requests in flight",
            Self::Supply => "what feeds them",
            Self::Both => "both",
        }
    }
}

/// Looks at how many requests were in flight, each with how far the test was.
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
    /// Notes a look.
    pub fn note(&mut self, seconds: f64, ended: u64, taken: u64) {
        self.looks.push(InFlightSample { seconds, ended, taken });
    }

    /// Returns the mean of the looks between the first and the last tenth of `whole`, each weighed with the time since
    /// the one before; `None` when there were fewer than three of them.
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
