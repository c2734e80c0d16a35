//! Statistics of the pipeline for metrics and the operator.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::outcome::{Outcome, Reason};
use stentor_core::ports::provider::ProviderStats;
use stentor_core::ports::queue::LaneDepth;
use stentor_core::ports::store::Recovery;
use stentor_core::time::Timestamp;

use super::budget::Unsettled;
use super::settle::is_attempt;
use super::settle::kind::{OutcomeKind, kind_of};
use super::supervisor::Failure;

/// Upper bounds of the histograms' buckets, in seconds; one more bucket holds larger values.
pub const BUCKETS_SECONDS: [f64; 14] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0];

/// A snapshot of the pipeline's statistics.
#[derive(Debug, Clone, Default)]
pub struct PipelineStats {
    /// One entry for each provider kind.
    pub providers: Vec<DispatchStats>,
    /// Contents of the queue at the last reading.
    pub depths: Vec<LaneDepth>,
    /// Active producers.
    pub producers: usize,
    /// Deliveries leased and not settled on this node.
    pub unsettled_deliveries: u64,
    /// Settlements that arrived after their lease was lost.
    pub stale_settlements: u64,
    /// Calls of the store that failed and were tried again.
    pub store_retries: u64,
    /// Chunks given up since start because they could neither be leased nor settled.
    pub chunks_quarantined: u64,
    /// Unfinished work recovered at the start.
    pub recovery: Recovery,
    /// Failed parts. After a failure nothing more is sent.
    pub failures: Vec<Failure>,
}

/// A snapshot of one provider kind's dispatchers.
#[derive(Debug, Clone)]
pub struct DispatchStats {
    /// The provider kind.
    pub provider: ProviderKind,
    /// Consumers now.
    pub consumers: usize,
    /// Deliveries leased and not settled.
    pub unsettled_deliveries: u64,
    /// Most deliveries of audiences that may be unsettled now.
    pub window_deliveries: u64,
    /// Statistics of its providers: connections, requests in flight, drains, aborts and failed connects.
    pub wire: ProviderStats,
    /// Lanes that rest, with the reasons.
    pub parked: Vec<ParkedStats>,
    /// Quotas in force.
    pub quotas: Vec<QuotaStats>,
    /// Attempts so far.
    pub attempts: u64,
    /// Attempts by outcome (`accepted`, `rejected`, ...) and reason.
    pub outcomes: Vec<OutcomeCount>,
    /// Time of batches at the provider.
    pub batch_duration: HistogramStats,
    /// Time from due to accepted, once per delivery.
    pub e2e_latency: HistogramStats,
}

/// A parked lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedStats {
    /// The app of the lane.
    pub app: AppId,
    /// End of the rest; `None` means until the credential changes or a slow probe succeeds.
    pub until: Option<Timestamp>,
    /// The cause, as a reason of the ledger.
    pub reason: Reason,
    /// A sentence for the operator.
    pub detail: String,
}

/// The quota of one credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaStats {
    /// The app of the credential.
    pub app: AppId,
    /// Messages per minute.
    pub per_minute: u64,
    /// Messages per minute allowed now, while the quota warms up.
    pub per_minute_now: u64,
    /// Messages that may be sent at once.
    pub tokens: u64,
    /// Total time for which work has waited for the quota.
    pub waited: Duration,
}

/// The number of times that an outcome occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutcomeCount {
    /// Its kind.
    pub outcome: OutcomeKind,
    /// The cause, as a reason of the ledger.
    pub reason: Reason,
    /// Number of occurrences.
    pub count: u64,
}

/// A snapshot of a histogram.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HistogramStats {
    /// Counts by bucket, not cumulative; the last one counts values above every bound of [`BUCKETS_SECONDS`].
    pub counts: Vec<u64>,
    /// Sum of all values, in seconds.
    pub sum_seconds: f64,
}

/// Counters of one dispatcher.
#[derive(Default)]
pub(crate) struct DispatchMeter {
    pub(crate) consumers: AtomicUsize,
    pub(crate) window: AtomicU64,
    pub(crate) unsettled: Arc<Unsettled>,
    attempts: AtomicU64,
    outcomes: Mutex<HashMap<(OutcomeKind, Reason), u64>>,
    batch_duration: Histogram,
    e2e_latency: Histogram,
}

impl DispatchMeter {
    /// Records the outcomes of a batch that took `took`.
    pub(crate) fn note_batch(&self, outcomes: &[Outcome], took: Duration) {
        let attempts = outcomes.iter().filter(|outcome| is_attempt(outcome)).count();
        self.attempts.fetch_add(attempts as u64, Ordering::Relaxed);
        self.batch_duration.add(took, 1);
        let mut counts = self.outcomes.lock();
        // Neighbouring outcomes are mostly equal: one look-up serves a run of them.
        for run in outcomes.chunk_by(|a, b| a == b) {
            *counts.entry(kind_of(&run[0])).or_default() += run.len() as u64;
        }
    }

    /// Records `count` deliveries accepted `after` their due time.
    pub(crate) fn note_accepted(&self, after: Duration, count: u64) {
        self.e2e_latency.add(after, count);
    }

    /// Takes a snapshot, without the data of the lanes.
    pub(crate) fn picture(&self, provider: ProviderKind) -> DispatchStats {
        let counts = self.outcomes.lock();
        let mut outcomes: Vec<_> = counts
            .iter()
            .map(|((outcome, reason), count)| OutcomeCount {
                outcome: *outcome,
                reason: *reason,
                count: *count,
            })
            .collect();
        outcomes.sort_unstable_by_key(|one| (one.outcome.as_str(), one.reason));
        DispatchStats {
            provider,
            consumers: self.consumers.load(Ordering::Relaxed),
            unsettled_deliveries: self.unsettled.total(),
            window_deliveries: self.window.load(Ordering::Relaxed),
            wire: ProviderStats::default(),
            parked: Vec::new(),
            quotas: Vec::new(),
            attempts: self.attempts.load(Ordering::Relaxed),
            outcomes,
            batch_duration: self.batch_duration.picture(),
            e2e_latency: self.e2e_latency.picture(),
        }
    }
}

/// A histogram of durations.
#[derive(Default)]
pub(crate) struct Histogram {
    counts: [AtomicU64; BUCKETS_SECONDS.len() + 1],
    sum_micros: AtomicU64,
}

impl Histogram {
    /// Adds a duration `count` times.
    pub(crate) fn add(&self, value: Duration, count: u64) {
        let seconds = value.as_secs_f64();
        let bucket = BUCKETS_SECONDS.partition_point(|bound| *bound < seconds);
        self.counts[bucket].fetch_add(count, Ordering::Relaxed);
        let micros = u64::try_from(value.as_micros()).unwrap_or(u64::MAX).saturating_mul(count);
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Takes a snapshot.
    pub(crate) fn picture(&self) -> HistogramStats {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        HistogramStats { counts, sum_seconds: self.sum_micros.load(Ordering::Relaxed) as f64 / 1e6 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_a_bound_belongs_to_that_bucket() {
        let histogram = Histogram::default();
        histogram.add(Duration::from_millis(1), 2);
        histogram.add(Duration::from_secs(601), 1);
        let picture = histogram.picture();
        assert_eq!((picture.counts[0], picture.counts[14]), (2, 1));
        assert!((picture.sum_seconds - 601.002).abs() < 1e-9);
    }

    #[test]
    fn outcomes_are_counted_by_kind_and_reason() {
        let meter = DispatchMeter::default();
        meter.note_batch(&[Outcome::Accepted, Outcome::Unknown, Outcome::Accepted], Duration::ZERO);
        let picture = meter.picture(ProviderKind::Fcm);
        assert_eq!(picture.attempts, 3);
        let accepted = OutcomeCount { outcome: OutcomeKind::Accepted, reason: Reason::None, count: 2 };
        assert_eq!(picture.outcomes[0], accepted);
    }
}
