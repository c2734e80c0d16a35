//! Distributions of times: the whole histogram, with a summary of its main values.

use super::{ForkRecord, RecordError, phase};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};

/// Significant digits of a histogram: the error is at most a thousandth.
const DIGITS: u8 = 3;
/// The maximum length of an encoded histogram.
const TEXT_MAX_BYTES: usize = 1 << 20;

/// The start of the measured times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum From {
    /// The actual start.
    #[default]
    Start,
    /// The intended start.
    Intended,
}

/// Times of one phase over the measured exchanges of one fork.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseLatency {
    /// Always `ns`.
    pub unit: String,
    /// `HdrHistogram` V2, not compressed, in base64; quantiles over several forks are computed from their sum.
    pub hdr: String,
    /// Arithmetic mean of the exact times.
    pub mean: f64,
    /// Standard deviation of the exact times.
    pub sd: f64,
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    pub p999: u64,
    /// The longest.
    pub max: u64,
    /// Number of times.
    pub n: u64,
    /// The start of the times.
    pub from: From,
}

impl PhaseLatency {
    /// Summarizes times; negative times count as zero. `None` without times.
    pub fn of(times_ns: &[i64], from: From) -> Result<Option<Self>, RecordError> {
        let mut sorted: Vec<u64> = times_ns.iter().map(|time| u64::try_from(*time).unwrap_or(0)).collect();
        sorted.sort_unstable();
        let Some(max) = sorted.last().copied() else { return Ok(None) };
        let count = sorted.len() as f64;
        let mean = sorted.iter().map(|time| *time as f64).sum::<f64>() / count;
        let squares: f64 = sorted.iter().map(|time| (*time as f64 - mean).powi(2)).sum();
        let sd = if sorted.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        let at = |share: f64| sorted[((share * count).ceil() as usize).clamp(1, sorted.len()) - 1];
        let (p50, p90, p95) = (at(0.5), at(0.9), at(0.95));
        Ok(Some(Self {
            unit: "ns".into(),
            hdr: text(&sorted)?,
            mean,
            sd,
            p50,
            p90,
            p95,
            p99: at(0.99),
            p999: at(0.999),
            max,
            n: sorted.len() as u64,
            from,
        }))
    }

    /// Decodes the histogram. Its text is untrusted input.
    pub fn histogram(&self) -> Result<Histogram<u64>, RecordError> {
        if self.hdr.len() > TEXT_MAX_BYTES {
            return Err(RecordError::Histogram(format!("it is longer than {TEXT_MAX_BYTES} bytes")));
        }
        let bytes = STANDARD.decode(&self.hdr);
        let bytes = bytes.map_err(|error| RecordError::Histogram(error.to_string()))?;
        let histogram = Deserializer::new().deserialize(&mut bytes.as_slice());
        histogram.map_err(|error| RecordError::Histogram(error.to_string()))
    }
}

impl ForkRecord {
    /// Returns the times of a whole exchange: of a synchronisation if there is one, else of the round trip.
    #[must_use]
    pub fn whole(&self) -> Option<&PhaseLatency> {
        self.latency.get(phase::SYNC).or_else(|| self.latency.get(phase::RTT))
    }
}

fn text(times_ns: &[u64]) -> Result<String, RecordError> {
    let histogram = Histogram::<u64>::new(DIGITS);
    let mut histogram = histogram.map_err(|error| RecordError::Histogram(error.to_string()))?;
    for time in times_ns {
        histogram.record(*time).map_err(|error| RecordError::Histogram(error.to_string()))?;
    }
    let mut bytes = Vec::new();
    let written = V2Serializer::new().serialize(&histogram, &mut bytes);
    written.map_err(|error| RecordError::Histogram(error.to_string()))?;
    Ok(STANDARD.encode(bytes))
}
