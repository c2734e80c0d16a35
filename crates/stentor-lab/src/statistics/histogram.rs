//! Distributions of durations that can be kept, merged and read by other tools (HdrHistogram, V2).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2Serializer};

/// Digits that a duration keeps.
const DIGITS: u8 = 3;
/// Longest encoded histogram that is read, in bytes; one of three digits over all durations takes less.
const ENCODED_MAX_BYTES: usize = 1 << 20;

/// Why a histogram cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The text is no base64, or too long.
    #[error("a histogram is not base64 of at most {ENCODED_MAX_BYTES} bytes")]
    Text,
    /// The bytes are no histogram.
    #[error("a histogram is not an HdrHistogram in its V2 form: {0}")]
    Form(String),
}

/// Durations in nanoseconds, to three digits.
#[derive(Debug, Clone)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

impl Histogram {
    /// Makes an empty one.
    pub fn new() -> Result<Self, HistogramError> {
        let empty = hdrhistogram::Histogram::new(DIGITS);
        empty.map(Self).map_err(|error| HistogramError::Form(error.to_string()))
    }

    /// Puts durations into one.
    pub fn of(durations_ns: impl IntoIterator<Item = u64>) -> Result<Self, HistogramError> {
        let mut histogram = Self::new()?;
        durations_ns.into_iter().for_each(|duration| histogram.record(duration));
        Ok(histogram)
    }

    /// Adds a duration in nanoseconds.
    pub fn record(&mut self, duration_ns: u64) {
        // It grows as needed; only a duration beyond all counting would not fit.
        if self.0.record(duration_ns).is_err() {
            self.0.saturating_record(duration_ns);
        }
    }

    /// Adds all durations of another.
    pub fn merge(&mut self, other: &Self) -> Result<(), HistogramError> {
        // One that was read does not grow by itself.
        self.0.auto(true);
        self.0.add(&other.0).map_err(|error| HistogramError::Form(error.to_string()))
    }

    /// Reads one from its base64 text.
    pub fn decode(text: &str) -> Result<Self, HistogramError> {
        if text.len() > ENCODED_MAX_BYTES {
            return Err(HistogramError::Text);
        }
        let bytes = STANDARD.decode(text).map_err(|_| HistogramError::Text)?;
        let read = Deserializer::new().deserialize(&mut bytes.as_slice());
        read.map(Self).map_err(|error| HistogramError::Form(error.to_string()))
    }

    /// Writes it as base64 text.
    pub fn encode(&self) -> Result<String, HistogramError> {
        let mut bytes = Vec::new();
        let written = V2Serializer::new().serialize(&self.0, &mut bytes);
        written.map_err(|error| HistogramError::Form(error.to_string()))?;
        Ok(STANDARD.encode(bytes))
    }

    /// Counts the durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Gives the duration in nanoseconds below which the share `part` lies; 0 when it is empty.
    #[must_use]
    pub fn quantile_ns(&self, part: f64) -> u64 {
        self.0.value_at_quantile(part.clamp(0.0, 1.0))
    }

    /// Lists durations in nanoseconds, ascending, each with the share of all that are no longer.
    #[must_use]
    pub fn shares(&self) -> Vec<(u64, f64)> {
        let all = self.0.len().max(1) as f64;
        let mut seen = 0;
        let recorded = self.0.iter_recorded();
        let share = recorded.map(|step| {
            seen += step.count_since_last_iteration();
            (step.value_iterated_to(), seen as f64 / all)
        });
        share.collect()
    }
}

#[cfg(test)]
mod tests;
