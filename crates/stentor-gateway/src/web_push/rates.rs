//! The rate limit of messages per subscription: a token bucket for each recently used one.

use std::collections::HashMap;
use std::hash::Hash;

use parking_lot::Mutex;
use stentor_core::time::Timestamp;

/// Buckets kept in memory; full ones are dropped first.
const BUCKETS_MAX_COUNT: usize = 65_536;

/// A rate limit: a burst size and a sustained rate per minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PushRate {
    /// Most events at once.
    pub burst_count: u32,
    /// Sustained events per minute.
    pub per_minute: u32,
}

impl PushRate {
    /// FCM's limit for one device: 240 a minute.
    pub const DEFAULT: Self = Self { burst_count: 240, per_minute: 240 };
}

/// Tokens of one subscription, at the time of the last count.
#[derive(Debug, Clone, Copy)]
struct PushBucket {
    tokens: f64,
    counted_at: Timestamp,
}

/// The buckets by key.
#[derive(Debug)]
pub struct PushRates<K> {
    rate: PushRate,
    buckets: Mutex<HashMap<K, PushBucket>>,
}

impl<K: Hash + Eq + Clone> PushRates<K> {
    /// Starts without buckets.
    #[must_use]
    pub fn new(rate: PushRate) -> Self {
        Self { rate, buckets: Mutex::default() }
    }

    /// Takes a token. The error is the number of seconds until one is available.
    pub fn take(&self, key: &K, now: Timestamp) -> Result<(), u32> {
        let mut buckets = self.buckets.lock();
        if !buckets.contains_key(key) && buckets.len() >= BUCKETS_MAX_COUNT {
            buckets.retain(|_, bucket| !self.is_full(bucket, now));
            // All buckets are in use at once: a client creates subscriptions to evade the limit.
            if buckets.len() >= BUCKETS_MAX_COUNT {
                return Err(1);
            }
        }
        let full = PushBucket { tokens: f64::from(self.rate.burst_count), counted_at: now };
        let bucket = buckets.entry(key.clone()).or_insert(full);
        bucket.tokens = self.tokens(bucket, now);
        bucket.counted_at = now;
        if bucket.tokens >= 1.0 {
            bucket.tokens -= 1.0;
            return Ok(());
        }
        let seconds = (1.0 - bucket.tokens) / self.per_second();
        Err((seconds.ceil() as u32).max(1))
    }

    fn tokens(&self, bucket: &PushBucket, now: Timestamp) -> f64 {
        // The gain is zero if the clock went back.
        let gained = now.since(bucket.counted_at).as_secs_f64() * self.per_second();
        (bucket.tokens + gained).min(f64::from(self.rate.burst_count))
    }

    fn is_full(&self, bucket: &PushBucket, now: Timestamp) -> bool {
        self.tokens(bucket, now) >= f64::from(self.rate.burst_count)
    }

    fn per_second(&self) -> f64 {
        f64::from(self.rate.per_minute.max(1)) / 60.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_burst_goes_and_then_as_much_as_comes_back() {
        let rates = PushRates::new(PushRate { burst_count: 3, per_minute: 30 });
        assert_eq!([0; 3].map(|_| rates.take(&1, at(0))), [Ok(()); 3]);
        assert_eq!(rates.take(&1, at(0)), Err(2));
        assert_eq!(rates.take(&2, at(0)), Ok(()), "another subscription has tokens of its own");
        assert_eq!(rates.take(&1, at(1_500)), Err(1));
        assert_eq!(rates.take(&1, at(2_000)), Ok(()));
        assert_eq!(rates.take(&1, at(1_000)), Err(2), "a clock that goes back gives nothing");
    }

    #[test]
    fn more_subscriptions_than_are_remembered_wait_until_some_are_forgotten() {
        let rates = PushRates::new(PushRate { burst_count: 1, per_minute: 60 });
        (0..BUCKETS_MAX_COUNT).for_each(|key| assert_eq!(rates.take(&key, at(0)), Ok(())));
        assert_eq!(rates.take(&usize::MAX, at(0)), Err(1));
        assert_eq!(rates.take(&usize::MAX, at(1_000)), Ok(()));
    }
}
