//! The latency of responses.

use crate::dice::RequestRng;
use serde::{Deserialize, Serialize};
use std::time::Duration;

const MAX_LATENCY_MS: f64 = 3_600_000.0;

/// A distribution of answering times, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum AnswerLatency {
    /// Always the same.
    Fixed {
        /// The latency in milliseconds.
        ms: f64,
    },
    /// Evenly between two bounds.
    Uniform {
        /// The lower bound in milliseconds.
        min_ms: f64,
        /// The upper bound in milliseconds.
        max_ms: f64,
    },
    /// Mostly near the median, sometimes much longer.
    Lognormal {
        /// The median in milliseconds.
        median_ms: f64,
        /// The standard deviation of the logarithm; 0.5 is a calm service.
        sigma: f64,
    },
}

impl AnswerLatency {
    pub(crate) fn draw(&self, dice: &mut RequestRng) -> Duration {
        let ms = match self {
            Self::Fixed { ms } => *ms,
            Self::Uniform { min_ms, max_ms } => min_ms + (max_ms - min_ms) * dice.unit(),
            Self::Lognormal { median_ms, sigma } => median_ms * (sigma * dice.normal()).exp(),
        };
        // A log-normal tail has no end.
        Duration::from_micros((ms.clamp(0.0, MAX_LATENCY_MS) * 1000.0) as u64)
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let numbers = match self {
            Self::Fixed { ms } => [*ms, 0.0],
            Self::Uniform { min_ms, max_ms } if min_ms > max_ms => {
                return Err("latency: min_ms is above max_ms".to_owned());
            }
            Self::Uniform { min_ms, max_ms } => [*min_ms, *max_ms],
            Self::Lognormal { median_ms, sigma } => [*median_ms, *sigma],
        };
        let sane = numbers.iter().all(|number| number.is_finite() && (0.0..=MAX_LATENCY_MS).contains(number));
        if sane { Ok(()) } else { Err(format!("latency: numbers must be between 0 and {MAX_LATENCY_MS}")) }
    }
}
