//! Settings of the pipeline. The unit is part of each name.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use stentor_core::error::Invalid;
use stentor_core::limits::CHUNK_MAX_DEVICES;
use stentor_core::retry::RetryPolicy;

/// Settings of the pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PipelineConfig {
    /// Most devices in one chunk.
    pub chunk_max_devices: usize,
    /// Most chunks that a producer makes in one transaction.
    pub expand_max_chunks: usize,
    /// A producer pauses while its campaign has this many deliveries queued at its provider.
    pub producer_max_queued_deliveries: u64,
    /// Consumers that each provider in use keeps even when idle.
    pub consumers_min: usize,
    /// Most consumers of one provider for audiences, and the same number for single messages.
    pub consumers_max: usize,
    /// Most batches that one consumer has in flight.
    pub consumer_max_batches: usize,
    /// An idle consumer ends after this time.
    pub consumer_idle_ms: u64,
    /// Most deliveries leased and not settled on this node. Limits the duplicates of one crash.
    pub max_unsettled_deliveries: u64,
    /// Share of `max_unsettled_deliveries` and of every quota that is reserved for single messages, in percent.
    pub urgent_share_percent: u8,
    /// Duration of a lease. It is extended while its batch is in flight.
    pub lease_for_ms: u64,
    /// Most chunks leased in one transaction.
    pub lease_max_chunks: usize,
    /// Most chunks settled in one transaction.
    pub settle_max_chunks: usize,
    /// A batch without an answer after this time counts as unanswered.
    pub batch_timeout_ms: u64,
    /// Wait before the second attempt.
    pub retry_base_ms: u64,
    /// Longest wait between two attempts, unless the push service requests a longer one.
    pub retry_max_ms: u64,
    /// Most attempts of a delivery for reasons of its own.
    pub retry_max_attempts: u16,
    /// A credential with a quota starts at a tenth of it and reaches the full quota after this time; 0 for at once.
    pub quota_ramp_ms: u64,
    /// Limit of queued chunks. At the limit, new messages of apps that hold an equal share or more are refused, and their audiences are not
    /// expanded further.
    pub max_queued_chunks: u64,
    /// Additional chunks that may wait for credentials that cannot send, in percent of `max_queued_chunks`.
    pub parked_share_percent: u8,
    /// A lane without a valid credential is tried again after this time.
    pub credential_probe_ms: u64,
    /// A lane is parked after this many attempts in a row without an answer of the push service.
    pub unanswered_max_attempts: u32,
    /// At the start, credentials get their access tokens and a connection before anything is sent, if there are at most this many. With
    /// more credentials none is prepared, because it is unknown which ones will be used.
    pub ready_max_credentials: usize,
    /// Scheduled audiences that are due on a full minute start up to this much later, unless they are exact; 0 for at once.
    pub start_spread_ms: u64,
    /// Longest sleep of the scheduler.
    pub scheduler_max_sleep_ms: u64,
    /// Interval for finding running campaigns without a producer on this node.
    pub producers_interval_ms: u64,
    /// Interval for reading the depths of the queue.
    pub depths_interval_ms: u64,
    /// Interval for publishing every queued chunk again.
    pub republish_interval_ms: u64,
    /// Interval for finding expired chunks and lost leases.
    pub sweep_interval_ms: u64,
    /// Interval for deleting old campaigns.
    pub prune_interval_ms: u64,
    /// Retention of ended campaigns.
    pub campaign_retention_hours: u64,
    /// Retention of audit entries.
    pub audit_retention_hours: u64,
    /// Retention of the responses to idempotency keys; at least 24.
    pub idempotency_retention_hours: u64,
    /// Retention of push tokens that were messaged and never registered. They are kept at least as long as a campaign that counts them.
    pub unlisted_retention_hours: u64,
}

impl Default for PipelineConfig {
    fn default() -> Self {
        Self {
            chunk_max_devices: 1_000,
            expand_max_chunks: 16,
            producer_max_queued_deliveries: 24_000,
            consumers_min: 0,
            consumers_max: 8,
            consumer_max_batches: 64,
            consumer_idle_ms: 2_000,
            max_unsettled_deliveries: 100_000,
            urgent_share_percent: 20,
            lease_for_ms: 60_000,
            lease_max_chunks: 32,
            settle_max_chunks: 64,
            batch_timeout_ms: 300_000,
            retry_base_ms: 1_000,
            retry_max_ms: 300_000,
            retry_max_attempts: 10,
            quota_ramp_ms: 60_000,
            max_queued_chunks: 1_000_000,
            parked_share_percent: 50,
            credential_probe_ms: 60_000,
            unanswered_max_attempts: 20,
            ready_max_credentials: 32,
            start_spread_ms: 30_000,
            scheduler_max_sleep_ms: 30_000,
            producers_interval_ms: 5_000,
            depths_interval_ms: 1_000,
            republish_interval_ms: 30_000,
            sweep_interval_ms: 1_000,
            prune_interval_ms: 600_000,
            campaign_retention_hours: 30 * 24,
            audit_retention_hours: 365 * 24,
            idempotency_retention_hours: 48,
            unlisted_retention_hours: 90 * 24,
        }
    }
}

impl PipelineConfig {
    /// Rejects settings that would stop the pipeline or break a guarantee.
    pub fn checked(self) -> Result<Self, Invalid> {
        check((1..=CHUNK_MAX_DEVICES).contains(&self.chunk_max_devices), "chunk_max_devices", "1 to 10000")?;
        check(self.expand_max_chunks > 0, "expand_max_chunks", "at least 1")?;
        check(self.consumers_max > 0, "consumers_max", "at least 1")?;
        check(self.consumers_min <= self.consumers_max, "consumers_min", "at most consumers_max")?;
        check(self.consumer_max_batches > 0, "consumer_max_batches", "at least 1")?;
        let chunk = self.chunk_max_devices as u64;
        check(
            self.max_unsettled_deliveries >= chunk,
            "max_unsettled_deliveries",
            "at least chunk_max_devices",
        )?;
        check(self.urgent_share_percent <= 90, "urgent_share_percent", "at most 90")?;
        check(self.lease_for_ms >= 1_000, "lease_for_ms", "at least 1000")?;
        check(self.lease_max_chunks > 0, "lease_max_chunks", "at least 1")?;
        check(self.settle_max_chunks > 0, "settle_max_chunks", "at least 1")?;
        check(self.retry_max_attempts > 0, "retry_max_attempts", "at least 1")?;
        check(self.retry_base_ms > 0, "retry_base_ms", "at least 1")?;
        check(self.start_spread_ms < 60_000, "start_spread_ms", "less than 60000")?;
        check(self.max_queued_chunks > 0, "max_queued_chunks", "at least 1")?;
        check((1..=100).contains(&self.parked_share_percent), "parked_share_percent", "1 to 100")?;
        check(self.quota_ramp_ms <= 3_600_000, "quota_ramp_ms", "at most 3600000")?;
        check(self.idempotency_retention_hours >= 24, "idempotency_retention_hours", "at least 24")?;
        Ok(self)
    }

    /// Returns the retry policy.
    #[must_use]
    pub const fn retry(&self) -> RetryPolicy {
        RetryPolicy {
            base: Duration::from_millis(self.retry_base_ms),
            max: Duration::from_millis(self.retry_max_ms),
            max_attempts: self.retry_max_attempts,
        }
    }

    /// Returns the duration of a lease.
    #[must_use]
    pub const fn lease_for(&self) -> Duration {
        Duration::from_millis(self.lease_for_ms)
    }

    /// Returns the longest delay of audiences that are due on a full minute.
    #[must_use]
    pub const fn start_spread(&self) -> Duration {
        Duration::from_millis(self.start_spread_ms)
    }

    /// Returns the limit of chunks that wait for credentials that cannot send.
    #[must_use]
    pub const fn parked_max_chunks(&self) -> u64 {
        self.max_queued_chunks.saturating_mul(self.parked_share_percent as u64) / 100
    }

    /// Returns the limit of unsettled deliveries of audiences; the rest is reserved for single messages.
    #[must_use]
    pub const fn bulk_max_unsettled_deliveries(&self) -> u64 {
        self.max_unsettled_deliveries - self.max_unsettled_deliveries / 100 * self.urgent_share_percent as u64
    }
}

fn check(holds: bool, field: &str, problem: &str) -> Result<(), Invalid> {
    if holds { Ok(()) } else { Err(Invalid::new(format!("pipeline.{field}"), problem)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_settings_hold_their_own_rules() {
        let config = PipelineConfig::default();
        assert_eq!(config.clone().checked(), Ok(config.clone()));
        assert_eq!(config.bulk_max_unsettled_deliveries(), 80_000);
    }

    #[test]
    fn a_setting_with_which_nothing_moves_is_refused_by_name() {
        let still = PipelineConfig { consumers_max: 0, ..PipelineConfig::default() };
        assert_eq!(still.checked().expect_err("refused").field, "pipeline.consumers_max");
        let forgetful = PipelineConfig { idempotency_retention_hours: 1, ..PipelineConfig::default() };
        assert_eq!(forgetful.checked().expect_err("refused").field, "pipeline.idempotency_retention_hours");
    }
}
