//! Metrics of operations: calls, outcomes and durations. The labels come from the contract, so that there are at most operations times
//! codes of them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::contract::ServiceResult;
use crate::pipeline::stats::{Histogram, HistogramStats};

/// The outcome of an operation that was not refused.
const OK: &str = "ok";
/// The outcome of an operation that timed out, or lost its caller.
const ABANDONED: &str = "abandoned";

/// The counts of all operations.
#[derive(Default)]
pub struct OperationMeter(Mutex<BTreeMap<&'static str, OperationCounts>>);

#[derive(Default)]
struct OperationCounts {
    by_outcome: BTreeMap<&'static str, u64>,
    durations: Histogram,
}

/// The counts of one operation.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationStats {
    /// Its name in the contract.
    pub operation: &'static str,
    /// Requests by outcome: `ok`, `abandoned`, or the code of a refusal.
    pub by_outcome: Vec<(&'static str, u64)>,
    /// Durations of its requests.
    pub durations: HistogramStats,
}

impl OperationMeter {
    /// Runs an operation and counts it.
    pub(crate) async fn measure<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = ServiceResult<T>>,
    ) -> ServiceResult<T> {
        let mut measured =
            RunningOperation { meter: self, operation, outcome: ABANDONED, began: Instant::now() };
        let done = work.await;
        measured.outcome = done.as_ref().map_or_else(|problem| problem.code.as_str(), |_| OK);
        done
    }

    /// Returns a snapshot, in order of name.
    #[must_use]
    pub fn picture(&self) -> Vec<OperationStats> {
        let picture = |(operation, counts): (&&'static str, &OperationCounts)| OperationStats {
            operation,
            by_outcome: counts.by_outcome.iter().map(|(outcome, count)| (*outcome, *count)).collect(),
            durations: counts.durations.picture(),
        };
        self.lock().iter().map(picture).collect()
    }

    fn note(&self, operation: &'static str, outcome: &'static str, took: Duration) {
        let mut all = self.lock();
        let counts = all.entry(operation).or_default();
        *counts.by_outcome.entry(outcome).or_default() += 1;
        counts.durations.add(took, 1);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, OperationCounts>> {
        self.0.lock()
    }
}

/// Counts an operation at its end, whether it completes or is dropped.
struct RunningOperation<'a> {
    meter: &'a OperationMeter,
    operation: &'static str,
    outcome: &'static str,
    began: Instant,
}

impl Drop for RunningOperation<'_> {
    fn drop(&mut self) {
        self.meter.note(self.operation, self.outcome, self.began.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Problem;

    #[tokio::test]
    async fn an_operation_is_counted_by_how_it_ends_also_when_nobody_waits_for_it_any_longer() {
        let meter = OperationMeter::default();
        meter.measure("a.b", async { Ok(1) }).await.expect("done");
        meter.measure("a.b", async { Err::<(), _>(Problem::not_found("thing")) }).await.expect_err("refused");
        let never = meter.measure("a.b", std::future::pending::<ServiceResult<()>>());
        tokio::time::timeout(Duration::from_millis(1), never).await.expect_err("abandoned");
        let picture = meter.picture();
        assert_eq!(picture[0].operation, "a.b");
        assert_eq!(picture[0].by_outcome, [("abandoned", 1), ("not_found", 1), ("ok", 1)]);
        assert_eq!(picture[0].durations.counts.iter().sum::<u64>(), 3);
    }
}
