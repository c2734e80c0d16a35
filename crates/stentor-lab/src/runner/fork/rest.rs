//! The step from the warm-up to a share of a processor. A Java machine goes on compiling after its last exchange, and the host of a virtual
//! machine takes the memory of processes that rest.

use std::time::{Duration, Instant};

use super::digests::Digests;
use super::half::RunningHalf;
use super::{AttemptFailure, ForkAttempt, samples};
use crate::runner::testbed::Testbed;
use crate::subject::protocol::{ExchangeSchedule, SubjectRole};

/// Time between two readings of the processor time.
const WINDOW: Duration = Duration::from_millis(200);
/// The halves rest when they use at most this share of a processor together.
const RESTING_SHARE: f64 = 0.05;
/// Longest wait.
const REST_MAX: Duration = Duration::from_secs(20);

impl ForkAttempt<'_> {
    /// Holds both halves to the cell's limits, if it has any. Returns the time of an exchange at the cell's share of a processor, from
    /// which the interval of the others follows; `None` without a share.
    pub(super) async fn held(
        &self,
        testbed: &mut dyn Testbed,
        server: &RunningHalf,
        client: &mut RunningHalf,
        digests: &Digests,
    ) -> Result<Option<u64>, AttemptFailure> {
        if self.paced() == 0 {
            testbed.hold(self.cell)?;
            return Ok(None);
        }
        until_halves_rest(testbed, server, client).await;
        // Brings the memory back, with a whole processor.
        self.one_exchange(client, digests).await?;
        testbed.hold(self.cell)?;
        let mut last = None;
        for _ in 0..self.cell.amount.at_share() {
            last = Some(self.one_exchange(client, digests).await?);
        }
        Ok(last)
    }

    /// Runs an exchange, and returns its time in nanoseconds.
    async fn one_exchange(&self, client: &mut RunningHalf, digests: &Digests) -> Result<u64, AttemptFailure> {
        let closed = ExchangeSchedule::Closed { think_ns: 0 };
        let (patience, out) = (self.patience(), self.path(SubjectRole::Client, ""));
        let exchange = self.go(&mut client.host, closed, 1, &digests.first, patience, &out).await?;
        Ok(samples::median_ns(&exchange, &self.inserted()?))
    }

    /// Counts the exchanges after the rest and before the measured ones; processes without a warm-up have none.
    pub(super) const fn paced(&self) -> u32 {
        if self.cell.cpu_percent.is_some() { self.cell.amount.paced() } else { 0 }
    }
}

/// Waits until both halves rest, or for [`REST_MAX`].
async fn until_halves_rest(testbed: &mut dyn Testbed, server: &RunningHalf, client: &RunningHalf) {
    let halves = [(SubjectRole::Client, client), (SubjectRole::Server, server)];
    let mut used =
        || -> u64 { halves.iter().filter_map(|(role, half)| testbed.usage(*role, &half.host).cpu_ns).sum() };
    let (began, mut before) = (Instant::now(), used());
    while began.elapsed() < REST_MAX {
        tokio::time::sleep(WINDOW).await;
        let now = used();
        if is_rest(now.saturating_sub(before)) {
            return;
        }
        before = now;
    }
}

/// Returns true if so many nanoseconds of processor time in a window are rest.
fn is_rest(used_ns: u64) -> bool {
    used_ns as f64 <= RESTING_SHARE * WINDOW.as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_that_compiles_with_a_tenth_of_a_processor_does_not_rest() {
        assert!(is_rest(0) && is_rest(10_000_000));
        assert!(!is_rest(20_000_000));
    }
}
