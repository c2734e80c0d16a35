//! Latency that grows with the load.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// Maximum of answers whose ends are kept; more of them count as so many.
const WAITING_MAX_COUNT: usize = 100_000;
const DELAY_MAX: Duration = Duration::from_secs(3600);
const EXPONENT_MAX: f64 = 10.0;

/// A push service that answers more slowly while many answers wait: its latency is multiplied by (waiting / `from_waiting`)^`exponent`, and
/// never by less than 1. At exponent 1 its rate is limited; above 1 the rate falls when more requests are in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadGrowth {
    /// The number of waiting answers above which the latency grows.
    pub from_waiting: u32,
    /// The growth.
    pub exponent: f64,
}

impl LoadGrowth {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.from_waiting == 0 {
            return Err("load.from_waiting must be at least 1".to_owned());
        }
        if (0.0..=EXPONENT_MAX).contains(&self.exponent) {
            return Ok(());
        }
        Err(format!("load.exponent must be between 0 and {EXPONENT_MAX}"))
    }

    fn factor(&self, waiting: usize) -> f64 {
        (waiting as f64 / f64::from(self.from_waiting)).max(1.0).powf(self.exponent)
    }
}

/// The answers that wait, by their ends.
#[derive(Debug, Default)]
pub(super) struct WaitingAnswers {
    ends: Mutex<BinaryHeap<Reverse<Instant>>>,
}

impl WaitingAnswers {
    /// Returns the delay of an answer that would take `usual` without any load, and counts it as waiting until then.
    pub(super) fn delay(&self, growth: &LoadGrowth, usual: Duration, now: Instant) -> Duration {
        let mut ends = self.ends.lock();
        while ends.peek().is_some_and(|Reverse(end)| *end <= now) {
            ends.pop();
        }
        let seconds = usual.as_secs_f64() * growth.factor(ends.len() + 1);
        let delay = Duration::from_secs_f64(seconds.min(DELAY_MAX.as_secs_f64()));
        if ends.len() < WAITING_MAX_COUNT {
            ends.push(Reverse(now + delay));
        }
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROWTH: LoadGrowth = LoadGrowth { from_waiting: 2, exponent: 1.0 };
    const USUAL: Duration = Duration::from_millis(10);

    #[test]
    fn an_answer_takes_longer_while_many_wait_and_as_long_as_usual_afterwards() {
        let (waiting, now) = (WaitingAnswers::default(), Instant::now());
        let ms = |at: Instant| waiting.delay(&GROWTH, USUAL, at).as_millis();
        assert_eq!([ms(now), ms(now), ms(now), ms(now)], [10, 10, 15, 20]);
        // Two of the four have ended.
        assert_eq!(ms(now + Duration::from_millis(12)), 15);
        assert_eq!(ms(now + Duration::from_secs(1)), 10);
    }

    #[test]
    fn above_exponent_1_a_service_answers_less_often_when_more_requests_are_in_flight() {
        let rate = |in_flight: usize| {
            let growth = LoadGrowth { from_waiting: 20, exponent: 1.15 };
            in_flight as f64 / growth.factor(in_flight)
        };
        assert!(rate(20) > rate(50) && rate(50) > rate(100), "{} {} {}", rate(20), rate(50), rate(100));
    }

    #[test]
    fn a_growth_from_nothing_or_without_a_bound_is_refused() {
        let check = |from_waiting, exponent| LoadGrowth { from_waiting, exponent }.check();
        assert_eq!(check(20, 1.15), Ok(()));
        assert!(
            check(0, 1.0).is_err()
                && check(1, -1.0).is_err()
                && check(1, f64::NAN).is_err()
                && check(1, 11.0).is_err()
        );
    }
}
