//! The quota of one app at one provider. Tokens are drawn per chunk, before the chunk is leased.

use std::time::Duration;

use stentor_core::chunk::TrafficClass;
use stentor_core::id::AppId;
use stentor_core::ports::store::QuotaClaim;
use stentor_core::quota::{Bucket, Level, Quota};
use stentor_core::time::Timestamp;

use super::key::ProviderKey;
use super::levels::Slot;
use super::quota_share::QuotaShare;
use crate::pipeline::stats::QuotaStats;

/// Rules for quotas.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RateLimiterRules {
    /// Time that a cold credential takes to reach its quota.
    pub(crate) ramp: Duration,
    /// Share of a quota that is reserved for single messages, in percent.
    pub(crate) urgent_share_percent: u8,
    /// Most devices of an audience's chunk.
    pub(crate) chunk_max_devices: u64,
    /// True if other nodes send with the same credentials.
    pub(crate) is_shared: bool,
}

impl RateLimiterRules {
    /// Applies a quota with the credential's remaining level, from this process or as `stored` by an earlier one. `None` removes the quota.
    pub(crate) fn apply(
        &self,
        old: Option<RateLimiter>,
        per_minute: Option<u32>,
        now: Timestamp,
        stored: impl FnOnce() -> (Option<Slot>, Option<Level>),
    ) -> Option<RateLimiter> {
        let quota = self.quota(per_minute?);
        if let Some(mut rate_limiter) = old {
            // The bucket is kept: putting a credential again must allow no second burst.
            rate_limiter.bucket.set_quota(quota, now);
            return Some(rate_limiter);
        }
        if self.is_shared {
            let share = Some(QuotaShare::default());
            return Some(RateLimiter { share, ..RateLimiter::new(Bucket::new(quota, now), None) });
        }
        let (slot, level) = stored();
        let bucket = match level {
            Some(level) => Bucket::resume(quota, level, now),
            None => Bucket::new(quota, now),
        };
        Some(RateLimiter::new(bucket, slot))
    }

    const fn quota(&self, per_minute: u32) -> Quota {
        Quota { per_minute, ramp: self.ramp, urgent_share_percent: self.urgent_share_percent }
    }

    /// Takes a snapshot of a quota that all nodes share, from its level in the store.
    pub(super) fn shared_picture(
        &self,
        app: AppId,
        per_minute: u32,
        level: Level,
        now: Timestamp,
    ) -> QuotaStats {
        let bucket = Bucket::resume(self.quota(per_minute).shared(), level, now);
        RateLimiter::new(bucket, None).picture(app, now)
    }
}

/// A bucket with statistics of its use.
pub(crate) struct RateLimiter {
    bucket: Bucket,
    /// The place where its level is saved.
    slot: Option<Slot>,
    /// Assumed size of a chunk of named devices until it is leased: the largest recent one, slowly decreasing.
    urgent_guess: u64,
    waits_until: Timestamp,
    waited: Duration,
    /// This node's share of a quota that all nodes draw from in the store; the bucket is unused in that case.
    share: Option<QuotaShare>,
}

impl RateLimiter {
    const fn new(bucket: Bucket, slot: Option<Slot>) -> Self {
        let waits_until = Timestamp::from_millis(0);
        Self { bucket, slot, urgent_guess: 1, waits_until, waited: Duration::ZERO, share: None }
    }

    /// Takes the tokens of one chunk before its size is known. Returns their number.
    pub(crate) fn take(
        &mut self,
        class: TrafficClass,
        rules: &RateLimiterRules,
        now: Timestamp,
    ) -> Result<u64, Timestamp> {
        let count = if class == TrafficClass::Bulk { rules.chunk_max_devices } else { self.urgent_guess };
        if let Some(share) = &mut self.share {
            return share.take(class, count, now);
        }
        self.bucket.take(class, count, now)?;
        // Saved before the chunk is sent: if the process dies with it, its tokens are spent.
        self.keep();
        Ok(count)
    }

    fn keep(&self) {
        if let Some(slot) = &self.slot {
            slot.keep(self.bucket.level());
        }
    }

    /// Records that work waits. Lanes that wait at the same time count once.
    pub(crate) fn note_wait(&mut self, until: Timestamp, now: Timestamp) {
        self.waited += until.since(self.waits_until.max(now));
        self.waits_until = self.waits_until.max(until);
    }

    /// Returns true if work waits for tokens.
    pub(super) fn is_waiting(&self, now: Timestamp) -> bool {
        now < self.waits_until
    }

    /// Corrects the tokens taken to the real size of a chunk.
    pub(super) fn correct(&mut self, class: TrafficClass, taken: u64, used: u64) {
        match &mut self.share {
            Some(share) => share.correct(class, taken, used),
            None => self.bucket.correct(class, taken, used),
        }
        self.keep();
        if class == TrafficClass::Urgent && used > 0 {
            // Decreases by an eighth with each smaller chunk, so that a single large chunk does not count forever.
            self.urgent_guess = used.max(self.urgent_guess - self.urgent_guess.div_ceil(8)).max(1);
        }
    }

    /// Returns the claims to request from the store.
    pub(super) fn claims(&self, (app, provider): ProviderKey) -> Vec<QuotaClaim> {
        let quota = self.bucket.quota();
        let wanted = self.share.as_ref().map(|share| share.wanted(quota)).unwrap_or_default();
        let claims = wanted.into_iter();
        claims.map(|(class, least, most)| QuotaClaim { app, provider, quota, class, least, most }).collect()
    }

    /// Adds tokens granted by the store.
    pub(super) fn add(&mut self, class: TrafficClass, count: u64, now: Timestamp) {
        if let Some(share) = &mut self.share {
            share.add(class, count, now);
        }
    }

    /// Takes a snapshot.
    pub(crate) fn picture(&mut self, app: AppId, now: Timestamp) -> QuotaStats {
        let tokens = match &self.share {
            Some(share) => share.tokens(TrafficClass::Urgent),
            None => self.bucket.tokens(TrafficClass::Urgent, now),
        };
        QuotaStats {
            app,
            per_minute: u64::from(self.bucket.quota().per_minute),
            per_minute_now: self.bucket.per_minute_now(now),
            tokens: tokens.max(0).unsigned_abs(),
            waited: self.waited,
        }
    }
}
