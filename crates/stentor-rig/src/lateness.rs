//! The lateness of the link engine: the time between the due instant of a packet and its delivery.

use serde::Serialize;
use std::fmt;

/// Buckets for each doubling, so that a quantile is right to a sixteenth.
const STEPS: u64 = 16;
const BUCKETS: usize = 64 * STEPS as usize;
const MICROSECOND_NS: f64 = 1000.0;

/// Counts of lateness, fine where it is small.
#[derive(Clone, Debug)]
pub struct LatenessHistogram {
    buckets: Vec<u64>,
    count: u64,
    sum_ns: u128,
    max_ns: u64,
}

impl Default for LatenessHistogram {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0, sum_ns: 0, max_ns: 0 }
    }
}

impl LatenessHistogram {
    /// Counts one packet.
    pub fn add(&mut self, late_ns: u64) {
        self.buckets[bucket(late_ns)] += 1;
        self.count += 1;
        self.sum_ns += u128::from(late_ns);
        self.max_ns = self.max_ns.max(late_ns);
    }

    /// Sums it up.
    #[must_use]
    pub fn summary(&self) -> Lateness {
        Lateness {
            packets: self.count,
            mean_ns: u64::try_from(self.sum_ns / u128::from(self.count.max(1))).unwrap_or(u64::MAX),
            p50_ns: self.quantile(50),
            p99_ns: self.quantile(99),
            max_ns: self.max_ns,
        }
    }

    /// The upper end of the bucket that holds this percentile, at most the largest value seen.
    fn quantile(&self, percent: u64) -> u64 {
        let wanted = (self.count * percent).div_ceil(100);
        let mut seen = 0;
        let found = self.buckets.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        found.map_or(0, upper_end).min(self.max_ns)
    }
}

/// The place of a value: exact below 16, then sixteen places for each doubling.
fn bucket(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let doublings = u64::from(value.ilog2()) - u64::from(STEPS.ilog2());
    (doublings * STEPS + (value >> doublings)) as usize
}

fn upper_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * STEPS {
        return bucket;
    }
    let doublings = bucket / STEPS - 1;
    let within = bucket % STEPS + STEPS;
    (((u128::from(within) + 1) << doublings) - 1).try_into().unwrap_or(u64::MAX)
}

/// Lateness in a few numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lateness {
    /// Packets that were handed on.
    pub packets: u64,
    /// The mean, in nanoseconds.
    pub mean_ns: u64,
    /// The median, in nanoseconds.
    pub p50_ns: u64,
    /// The 99th percentile, in nanoseconds.
    pub p99_ns: u64,
    /// The worst, in nanoseconds.
    pub max_ns: u64,
}

/// The lateness limits of a valid run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatenessLimits {
    /// For 99 of 100 packets, in nanoseconds.
    pub p99_ns: u64,
    /// For the worst, in nanoseconds.
    pub max_ns: u64,
}

impl Default for LatenessLimits {
    /// 2 ms for 99 of 100 packets, 25 ms for the worst: an engine on an idle machine of two cores stays below a tenth of it.
    fn default() -> Self {
        Self { p99_ns: 2_000_000, max_ns: 25_000_000 }
    }
}

impl Lateness {
    /// Returns why a run does not count, if it does not.
    #[must_use]
    pub fn complaint(&self, gate: LatenessLimits) -> Option<String> {
        let ms = |ns: u64| ns as f64 / 1e6;
        if self.p99_ns > gate.p99_ns {
            let (is, may) = (ms(self.p99_ns), ms(gate.p99_ns));
            return Some(format!(
                "the link was late: 1 packet of 100 by {is:.2} ms or more, {may} ms may be"
            ));
        }
        if self.max_ns > gate.max_ns {
            let (is, may) = (ms(self.max_ns), ms(gate.max_ns));
            return Some(format!("the link was late: one packet by {is:.2} ms, {may} ms may be"));
        }
        None
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |ns: u64| ns as f64 / MICROSECOND_NS;
        write!(
            f,
            "p50 {:.0} us, p99 {:.0} us, worst {:.0} us",
            us(self.p50_ns),
            us(self.p99_ns),
            us(self.max_ns)
        )
    }
}

#[cfg(test)]
mod tests;
