//! A token-bucket limiter for each app or address: a burst, and a sustained rate.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Most keys in memory; keys with a full allowance are removed first.
const KEYS_MAX_COUNT: usize = 65_536;

/// The rate of a token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivalRate {
    /// Size of the burst.
    pub burst_max_count: u32,
    /// Sustained events per second.
    pub per_second_max_count: u32,
}

/// The remaining allowance of a key at the time of its last event.
#[derive(Debug, Clone, Copy)]
struct ArrivalAllowance {
    left: f64,
    counted_at: Instant,
}

/// A rate limiter with one token bucket for each key.
#[derive(Debug)]
pub(crate) struct ArrivalLimiter<K> {
    rate: ArrivalRate,
    allowances: Mutex<HashMap<K, ArrivalAllowance>>,
}

impl<K: Hash + Eq> ArrivalLimiter<K> {
    pub(crate) fn new(rate: ArrivalRate) -> Self {
        Self { rate, allowances: Mutex::default() }
    }

    /// Takes one token; if none is left, returns the time to wait.
    pub(crate) fn take(&self, key: K) -> Result<(), Duration> {
        self.take_at(key, Instant::now())
    }

    fn take_at(&self, key: K, now: Instant) -> Result<(), Duration> {
        let mut allowances = self.allowances.lock();
        if allowances.len() >= KEYS_MAX_COUNT && !allowances.contains_key(&key) {
            allowances.retain(|_, one| self.left(one, now) < self.most());
            // All were used recently: a caller has more addresses than the limiter can remember.
            if allowances.len() >= KEYS_MAX_COUNT {
                return Err(Duration::from_secs(1));
            }
        }
        let fresh = ArrivalAllowance { left: self.most(), counted_at: now };
        let allowance = allowances.entry(key).or_insert(fresh);
        (allowance.left, allowance.counted_at) = (self.left(allowance, now), now);
        if allowance.left < 1.0 {
            let seconds = (1.0 - allowance.left) / f64::from(self.rate.per_second_max_count.max(1));
            return Err(Duration::from_secs_f64(seconds));
        }
        allowance.left -= 1.0;
        Ok(())
    }

    fn most(&self) -> f64 {
        f64::from(self.rate.burst_max_count.max(1))
    }

    fn left(&self, allowance: &ArrivalAllowance, now: Instant) -> f64 {
        let since = now.duration_since(allowance.counted_at).as_secs_f64();
        since.mul_add(f64::from(self.rate.per_second_max_count.max(1)), allowance.left).min(self.most())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: ArrivalRate = ArrivalRate { burst_max_count: 3, per_second_max_count: 2 };

    #[test]
    fn so_many_come_at_once_and_then_as_many_as_a_second_brings() {
        let (limiter, begin) = (ArrivalLimiter::new(RATE), Instant::now());
        assert_eq!([0; 3].map(|_| limiter.take_at(1, begin)), [Ok(()); 3]);
        assert_eq!(limiter.take_at(1, begin), Err(Duration::from_millis(500)));
        assert_eq!(limiter.take_at(2, begin), Ok(()), "another key has an allowance of its own");
        let later = begin + Duration::from_millis(500);
        assert_eq!(limiter.take_at(1, later), Ok(()));
        assert!(limiter.take_at(1, later).is_err());
    }

    #[test]
    fn more_keys_than_are_remembered_wait_until_some_are_forgotten() {
        let (limiter, begin) = (ArrivalLimiter::new(RATE), Instant::now());
        (0..KEYS_MAX_COUNT).for_each(|key| assert_eq!(limiter.take_at(key, begin), Ok(())));
        assert!(limiter.take_at(usize::MAX, begin).is_err());
        assert_eq!(limiter.take_at(usize::MAX, begin + Duration::from_secs(1)), Ok(()));
    }
}
