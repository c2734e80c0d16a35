//! The sending rate of one credential: a token bucket that its quota refills, with one token for each message.
//!
//! The bucket holds one second's worth and has two parts. The urgent part is filled first and only single messages draw from it; audiences
//! draw from the common part, single messages from both. A request for more than a part can hold is granted when the part is full; it
//! leaves a debt that the quota pays off, so that no chunk is too large to be sent. The fill rate depends on the bucket's warmth: it warms
//! up while tokens are missing and cools down while it is full, so that a credential that was idle starts slowly, as push services
//! recommend.
//!
//! A bucket outlives its process as a [`Level`]: a new bucket would grant a burst that was spent already, and forget debts.

use std::time::Duration;

use crate::chunk::TrafficClass;
use crate::time::Timestamp;

/// Capacity of a bucket, as a duration.
pub const BURST: Duration = Duration::from_secs(1);
/// Tokens that can be spent in a minute in addition to the refill of a shared bucket, in seconds of the quota: its content (1), its debt at
/// the end (1), and tokens that nodes drew earlier and keep for two seconds (2).
const BESIDE_SECONDS: u64 = 4;
/// Fill rate of a cold bucket, in thousandths of the quota.
const COLD_PERMILLE: u64 = 100;
const WHOLE_PERMILLE: u64 = 1_000;
const MINUTE_MILLIS: i128 = 60_000;
/// The bucket counts in grains, so that a millisecond at any quota and warmth is a whole number of them.
const GRAINS_PER_TOKEN: i128 = MINUTE_MILLIS * WHOLE_PERMILLE as i128;

/// The quota of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Messages per minute.
    pub per_minute: u32,
    /// Time in which a cold bucket reaches the full rate; zero for at once.
    pub ramp: Duration,
    /// Part of the bucket reserved for single messages.
    pub urgent_share_percent: u8,
}

impl Quota {
    /// Returns the reduced quota that refills a bucket shared by nodes. It accounts for the tokens that can be spent in a minute in
    /// addition to the refill, so that no minute exceeds the quota regardless of the number of nodes.
    #[must_use]
    pub const fn shared(self) -> Self {
        let per_minute = self.per_minute as u64 * 60 / (60 + BESIDE_SECONDS);
        Self { per_minute: if per_minute == 0 { 1 } else { per_minute as u32 }, ..self }
    }
}

/// The content of a bucket at an instant, so that another process can continue it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// Time of the last update.
    pub at: Timestamp,
    /// Its warmth, in milliseconds of the ramp.
    pub warm_ms: u64,
    /// The urgent part, in grains; below zero while a debt is paid off.
    pub urgent_grains: i64,
    /// The common part, in grains.
    pub common_grains: i64,
}

/// The bucket of one credential. The time is passed as an argument and may jump: a jump adds one full bucket at most.
#[derive(Debug, Clone)]
pub struct Bucket {
    quota: Quota,
    at: Timestamp,
    warm_ms: u64,
    urgent: i128,
    common: i128,
}

impl Bucket {
    /// Creates a cold bucket that is full for its warmth.
    #[must_use]
    pub fn new(quota: Quota, now: Timestamp) -> Self {
        let mut bucket = Self { quota, at: now, warm_ms: 0, urgent: 0, common: 0 };
        (bucket.urgent, bucket.common) = (bucket.urgent_max(), bucket.common_max());
        bucket
    }

    /// Continues an earlier bucket, with the refill since then and its debt.
    #[must_use]
    pub fn resume(quota: Quota, level: Level, now: Timestamp) -> Self {
        let (urgent, common) = (i128::from(level.urgent_grains), i128::from(level.common_grains));
        let mut bucket = Self { quota, at: level.at, warm_ms: level.warm_ms, urgent, common };
        bucket.warm_ms = bucket.warm_ms.min(bucket.ramp_ms());
        // Before the refill: a level stored under a larger quota may exceed the capacity.
        bucket.clamp();
        bucket.fill(now);
        bucket
    }

    /// Returns its content, for [`Self::resume`].
    #[must_use]
    pub fn level(&self) -> Level {
        // Only a debt can be too large: the content is bounded by a burst.
        let narrow = |grains: i128| i64::try_from(grains).unwrap_or(i64::MIN);
        let (urgent_grains, common_grains) = (narrow(self.urgent), narrow(self.common));
        Level { at: self.at, warm_ms: self.warm_ms, urgent_grains, common_grains }
    }

    /// Returns the current quota.
    #[must_use]
    pub const fn quota(&self) -> Quota {
        self.quota
    }

    /// Applies another quota from now on. The warmth stays, but tokens beyond the new capacity are lost.
    pub fn set_quota(&mut self, quota: Quota, now: Timestamp) {
        // Refill at the old rate up to now.
        self.fill(now);
        self.quota = quota;
        self.clamp();
    }

    /// Takes one token for each of `count` messages.
    ///
    /// # Errors
    ///
    /// Returns the earliest instant at which a retry is worthwhile.
    pub fn take(&mut self, class: TrafficClass, count: u64, now: Timestamp) -> Result<(), Timestamp> {
        self.fill(now);
        let wanted = grains(count);
        let missing = match class {
            TrafficClass::Urgent => wanted.min(self.urgent_max()) - self.urgent - self.common.max(0),
            TrafficClass::Bulk => match wanted.min(self.common_max()) - self.common {
                // The urgent part is filled first.
                missing if missing > 0 => missing + (self.urgent_max() - self.urgent).max(0),
                missing => missing,
            },
        };
        if missing > 0 {
            return Err(now.plus(millis(missing, self.grains_per_ms())));
        }
        self.spend(class, wanted);
        Ok(())
    }

    /// Takes the available tokens of a class, up to `most`, and returns their number; zero if fewer than `least` are available. A full
    /// bucket grants `most` and goes into debt, because its overflow until the next draw would be lost.
    pub fn draw(&mut self, class: TrafficClass, (least, most): (u64, u64), now: Timestamp) -> u64 {
        let there = u64::try_from(self.tokens(class, now)).unwrap_or_default().min(most);
        let counts = [most, there, least].into_iter().filter(|count| *count > 0 && *count >= least);
        let mut taken = counts.filter(|count| self.take(class, *count, now).is_ok());
        taken.next().unwrap_or_default()
    }

    /// Adjusts a granted request to the actual usage: an excess becomes a debt, unused tokens are returned.
    pub fn correct(&mut self, class: TrafficClass, taken: u64, used: u64) {
        if used >= taken {
            self.spend(class, grains(used - taken));
        } else {
            self.pour(class, grains(taken - used));
        }
    }

    /// Returns the number of tokens available to a class; it is negative while a debt is paid off.
    #[must_use]
    pub fn tokens(&mut self, class: TrafficClass, now: Timestamp) -> i64 {
        self.fill(now);
        let grains = match class {
            TrafficClass::Urgent => self.urgent + self.common.max(0),
            TrafficClass::Bulk => self.common,
        };
        i64::try_from(grains.div_euclid(GRAINS_PER_TOKEN)).unwrap_or(i64::MIN)
    }

    /// Returns the messages per minute that its warmth allows.
    #[must_use]
    pub fn per_minute_now(&mut self, now: Timestamp) -> u64 {
        self.fill(now);
        u64::from(self.quota.per_minute) * self.warmth_permille() / WHOLE_PERMILLE
    }

    fn spend(&mut self, class: TrafficClass, wanted: i128) {
        if class == TrafficClass::Bulk {
            self.common -= wanted;
            return;
        }
        let own = wanted.min(self.urgent.max(0));
        let shared = (wanted - own).min(self.common.max(0));
        self.common -= shared;
        self.urgent -= wanted - shared;
    }

    fn pour(&mut self, class: TrafficClass, grains: i128) {
        if class == TrafficClass::Bulk {
            self.common += grains;
        } else {
            let own = grains.min((self.urgent_max() - self.urgent).max(0));
            self.urgent += own;
            self.common += grains - own;
        }
        self.clamp();
    }

    /// Adds the refill for the time since the last update; a clock that goes back adds nothing.
    fn fill(&mut self, now: Timestamp) {
        let passed = now.since(self.at).as_millis();
        // Also when the clock goes back; otherwise nothing would be added until it catches up.
        self.at = now;
        let passed = i128::try_from(passed).unwrap_or(i128::MAX);
        let (rate, hole) = (self.grains_per_ms(), self.hole());
        // Bounded before the multiplication: a clock may jump by any amount.
        let filling = passed.min(div_ceil(hole, rate));
        self.pour(TrafficClass::Urgent, hole.min(rate * filling));
        self.warm(filling as u64, (passed - filling) as u64);
    }

    fn warm(&mut self, filling_ms: u64, full_ms: u64) {
        let warmer = self.warm_ms.saturating_add(filling_ms).min(self.ramp_ms());
        self.warm_ms = warmer.saturating_sub(full_ms);
        self.clamp();
    }

    fn clamp(&mut self) {
        self.urgent = self.urgent.min(self.urgent_max());
        self.common = self.common.min(self.common_max());
    }

    fn hole(&self) -> i128 {
        self.urgent_max() - self.urgent + self.common_max() - self.common
    }

    /// At least one token, so that a small quota does not block everything.
    fn urgent_max(&self) -> i128 {
        (self.burst() * i128::from(self.quota.urgent_share_percent.min(100)) / 100).max(GRAINS_PER_TOKEN)
    }

    fn common_max(&self) -> i128 {
        (self.burst() - self.urgent_max()).max(GRAINS_PER_TOKEN)
    }

    fn burst(&self) -> i128 {
        self.grains_per_ms() * BURST.as_millis() as i128
    }

    fn grains_per_ms(&self) -> i128 {
        i128::from(self.quota.per_minute.max(1)) * i128::from(self.warmth_permille())
    }

    fn warmth_permille(&self) -> u64 {
        match self.ramp_ms() {
            0 => WHOLE_PERMILLE,
            ramp => COLD_PERMILLE + (WHOLE_PERMILLE - COLD_PERMILLE) * self.warm_ms.min(ramp) / ramp,
        }
    }

    fn ramp_ms(&self) -> u64 {
        u64::try_from(self.quota.ramp.as_millis()).unwrap_or(u64::MAX).min(RAMP_MAX_MILLIS)
    }
}

/// Longest ramp that is accepted: a day.
const RAMP_MAX_MILLIS: u64 = 24 * 3_600 * 1_000;

fn grains(tokens: u64) -> i128 {
    i128::from(tokens) * GRAINS_PER_TOKEN
}

fn millis(grains: i128, per_ms: i128) -> Duration {
    Duration::from_millis(u64::try_from(div_ceil(grains, per_ms)).unwrap_or(u64::MAX))
}

/// Divides non-negative numbers, rounding up.
const fn div_ceil(grains: i128, per_ms: i128) -> i128 {
    (grains + per_ms - 1) / per_ms
}

#[cfg(test)]
mod tests;
