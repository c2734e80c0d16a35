//! The quota of one app at one provider, drawn from chunk by chunk, before a chunk is leased.

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

/// How quotas are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RateLimiterRules {
    /// How long a cold credential takes to reach its quota.
    pub(crate) ramp: Duration,
    /// Share of a quota that audiences leave to single messages.
    pub(crate) urgent_share_percent: u8,
    /// What a chunk of an audience may hold.
    pub(crate) chunk_max_devices: u64,
    /// Whether other nodes send with the same credentials.
    pub(crate) is_shared: bool,
}

impl RateLimiterRules {
    /// Puts a quota in force, with what the credential had left, in this process or as `kept` by one before; `None` lifts it.
    pub(crate) fn apply(
        &self,
        old: Option<RateLimiter>,
        per_minute: Option<u32>,
        now: Timestamp,
        kept: impl FnOnce() -> (Option<Slot>, Option<Level>),
    ) -> Option<RateLimiter> {
        let quota = self.quota(per_minute?);
        if let Some(mut rate_limiter) = old {
            // The same bucket goes on: putting a credential again must give no second burst.
            rate_limiter.bucket.set_quota(quota, now);
            return Some(rate_limiter);
        }
        if self.is_shared {
            let share = Some(QuotaShare::default());
            return Some(RateLimiter { share, ..RateLimiter::new(Bucket::new(quota, now), None) });
        }
        let (slot, level) = kept();
        let bucket = match level {
            Some(level) => Bucket::resume(quota, level, now),
            None => Bucket::new(quota, now),
        };
        Some(RateLimiter::new(bucket, slot))
    }

    const fn quota(&self, per_minute: u32) -> Quota {
        Quota { per_minute, ramp: self.ramp, urgent_share_percent: self.urgent_share_percent }
    }

    /// Makes a picture of a quota that all nodes share, by what the store has of it.
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

/// A bucket, and how it was used.
pub(crate) struct RateLimiter {
    bucket: Bucket,
    /// Where its level is kept.
    slot: Option<Slot>,
    /// What a chunk of named devices is taken to hold until it is leased: the largest of late, forgotten by and by.
    urgent_guess: u64,
    waits_until: Timestamp,
    waited: Duration,
    /// What this node has of it, where all nodes draw from it in the store; its own bucket holds nothing then.
    share: Option<QuotaShare>,
}

impl RateLimiter {
    const fn new(bucket: Bucket, slot: Option<Slot>) -> Self {
        let waits_until = Timestamp::from_millis(0);
        Self { bucket, slot, urgent_guess: 1, waits_until, waited: Duration::ZERO, share: None }
    }

    /// Takes the tokens of one chunk whose size is not known yet; returns how many.
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
        // Before the chunk is sent: a process that dies with it has spent its tokens.
        self.keep();
        Ok(count)
    }

    fn keep(&self) {
        if let Some(slot) = &self.slot {
            slot.keep(self.bucket.level());
        }
    }

    /// Notes that work waits; lanes that wait at the same time count once.
    pub(crate) fn note_wait(&mut self, until: Timestamp, now: Timestamp) {
        self.waited += until.since(self.waits_until.max(now));
        self.waits_until = self.waits_until.max(until);
    }

    /// Learns how large the chunk was.
    pub(super) fn correct(&mut self, class: TrafficClass, taken: u64, used: u64) {
        match &mut self.share {
            Some(share) => share.correct(class, taken, used),
            None => self.bucket.correct(class, taken, used),
        }
        self.keep();
        if class == TrafficClass::Urgent && used > 0 {
            // The largest of late: it falls by an eighth with each smaller chunk, so that one large chunk is not
            // remembered for ever.
            self.urgent_guess = used.max(self.urgent_guess - self.urgent_guess.div_ceil(8)).max(1);
        }
    }

    /// Returns what to ask the store for.
    pub(super) fn claims(&self, (app, provider): ProviderKey) -> Vec<QuotaClaim> {
        let quota = self.bucket.quota();
        let wanted = self.share.as_ref().map(|share| share.wanted(quota)).unwrap_or_default();
        let claims = wanted.into_iter();
        claims.map(|(class, least, most)| QuotaClaim { app, provider, quota, class, least, most }).collect()
    }

    /// Adds what the store gave.
    pub(super) fn add(&mut self, class: TrafficClass, count: u64, now: Timestamp) {
        if let Some(share) = &mut self.share {
            share.add(class, count, now);
        }
    }

    /// Makes a picture of it.
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
