//! Detection of a clock that jumped forward. By such a clock all records would be old enough to be deleted, which cannot be undone.
//!
//! After a forward jump of a day or more, nothing is deleted for a day. The jump may occur while the pipeline runs, or between the last
//! instant recorded in the store and the start. A server that was really off for that long deletes its old records a day late, which does
//! no harm. A wrong clock is corrected by then.

use std::time::Duration;

use stentor_core::time::Timestamp;
use tokio::time::Instant;

/// Smallest jump that is noticed. A smaller one only makes records expire that much earlier, which is little compared to their retention.
const NOTICED: Duration = Duration::from_secs(24 * 3_600);
/// Time for which the clock is not trusted after a jump.
const DOUBTED_FOR: Duration = Duration::from_secs(24 * 3_600);

/// Compares the wall clock with the elapsed monotonic time.
#[derive(Debug)]
pub(crate) struct ClockJumpDetector {
    looked: Instant,
    showed: Timestamp,
    doubted_until: Option<Instant>,
}

impl ClockJumpDetector {
    /// Starts with the last instant recorded in the store.
    pub(crate) fn since(known: Timestamp, looked: Instant) -> Self {
        Self { looked, showed: known, doubted_until: None }
    }

    /// Checks the clock. Returns true if its time is trusted.
    pub(crate) fn look(&mut self, looked: Instant, shows: Timestamp) -> bool {
        let expected = self.showed.plus(looked.saturating_duration_since(self.looked));
        (self.looked, self.showed) = (looked, shows);
        let jump = shows.since(expected);
        if jump >= NOTICED {
            tracing::warn!(
                seconds = jump.as_secs(),
                "the clock jumped forward: nothing is forgotten for a day"
            );
            self.doubted_until = Some(looked + DOUBTED_FOR);
        }
        self.doubted_until.is_none_or(|until| looked >= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + hours * 3_600_000)
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_jumped_is_believed_after_a_day_without_another_jump() {
        let mut detector = ClockJumpDetector::since(at(0), Instant::now());
        let mut look = |shows| detector.look(Instant::now(), at(shows));
        assert_eq!([look(0), look(23), look(0)], [true; 3], "it is hardly wrong");
        tokio::time::advance(HOUR).await;
        assert_eq!([look(1), look(961), look(961)], [true, false, false]);
        tokio::time::advance(23 * HOUR).await;
        assert!(!look(984));
        tokio::time::advance(HOUR).await;
        assert!(look(985));
        assert_eq!([look(0), look(985)], [true, false], "back is no jump forward, forward again is one");
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_store_knows_last_counts_at_the_start() {
        let now = Instant::now();
        assert!(ClockJumpDetector::since(at(0), now).look(now, at(23)));
        assert!(!ClockJumpDetector::since(at(0), now).look(now, at(24)));
    }
}
