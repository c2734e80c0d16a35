//! How often something may happen for each app or each address: so many at once, and so many a second after that.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Keys that are remembered; those that may do everything again are forgotten first.
const KEYS_MAX_COUNT: usize = 65_536;

/// So many at once, and so many a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivalRate {
    /// At once, at most.
    pub burst_max_count: u32,
    /// A second, lastingly.
    pub per_second_max_count: u32,
}

/// What is left for a key, at the moment when it was counted last.
#[derive(Debug, Clone, Copy)]
struct ArrivalAllowance {
    left: f64,
    counted_at: Instant,
}

/// Counts by key what happens.
#[derive(Debug)]
pub(crate) struct ArrivalLimiter<K> {
    rate: ArrivalRate,
    allowances: Mutex<HashMap<K, ArrivalAllowance>>,
}

impl<K: Hash + Eq> ArrivalLimiter<K> {
    pub(crate) fn new(rate: ArrivalRate) -> Self {
        Self { rate, allowances: Mutex::default() }
    }

    /// Counts one more; when that is too many, returns how long to wait.
    pub(crate) fn take(&self, key: K) -> Result<(), Duration> {
        self.take_at(key, Instant::now())
    }

    fn take_at(&self, key: K, now: Instant) -> Result<(), Duration> {
        let mut allowances = self.allowances.lock();
        if allowances.len() >= KEYS_MAX_COUNT && !allowances.contains_key(&key) {
            allowances.retain(|_, one| self.left(one, now) < self.most());
            // All were used lately: somebody has more addresses than can be told apart.
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
