//! The power of a verdict: the difference that it could have seen.

use super::{Compared, Evidence, Judgment};
use crate::claims::ClaimVerdict;
use crate::statistics::DETECTED_SHARE;
use serde::Serialize;
use std::fmt;

/// Percent of a whole.
const PERCENT: f64 = 100.0;
/// Percentages above this say no more than that almost nothing could have been seen.
const PERCENT_MAX: f64 = 1000.0;

/// The power of a verdict by measurements.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct VerdictPower {
    /// The difference, in percent of the smaller side, that the least sure of its comparisons would have decided.
    pub detectable_percent: f64,
    /// The share of repeated studies that would have decided it.
    pub probability: f64,
    /// The significance level of each comparison: the first step of Holm's method, shared among the looks at the results.
    pub level: f64,
    /// An undecided comparison excludes every difference larger than this, in percent; absent if the verdict is decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded_above_percent: Option<f64>,
}

impl Judgment {
    /// Returns the power of its comparisons at a significance level; `None` if chance has no part in them.
    #[must_use]
    pub fn power_at(&self, level: f64) -> Option<VerdictPower> {
        let is_told = |one: &&Compared| match self.verdict {
            ClaimVerdict::DoesNotHold => one.is_so == Some(false),
            ClaimVerdict::Undecided => one.is_so.is_none(),
            _ => true,
        };
        let told = || self.comparisons.iter().filter(is_told).filter_map(|one| one.evidence.as_ref());
        let by_chance = || told().filter(|one| one.is_ratio && one.has_chance());
        let largest = |share: &dyn Fn(&Evidence) -> f64| by_chance().map(share).reduce(f64::max);
        let detectable = largest(&|one| one.difference.detectable_share(level, one.band_share))?;
        let possible = largest(&|one| one.difference.possible_share(level))?;
        Some(VerdictPower {
            detectable_percent: PERCENT * detectable,
            probability: DETECTED_SHARE,
            level,
            excluded_above_percent: (self.verdict == ClaimVerdict::Undecided).then_some(PERCENT * possible),
        })
    }
}

impl Compared {
    /// Returns true if further rounds are of no use: it is decided at a significance level, or differences of `effect_share` and more are
    /// excluded, or chance has no part in it.
    #[must_use]
    pub fn is_settled(&self, level: f64, effect_share: f64) -> bool {
        let Some(evidence) = &self.evidence else { return self.is_so.is_some() };
        !evidence.has_chance() || evidence.p() <= level || evidence.difference.p_within(effect_share) <= level
    }
}

impl fmt::Display for VerdictPower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could have seen {}", percent(self.detectable_percent))?;
        match self.excluded_above_percent {
            Some(most) if most <= PERCENT_MAX => write!(f, ", and excludes more than {}", percent(most)),
            _ => Ok(()),
        }
    }
}

/// Writes a percentage with two digits, rounded up, so that it promises no more than is true.
fn percent(value: f64) -> String {
    if value > PERCENT_MAX {
        return format!("only more than {PERCENT_MAX} %");
    }
    let step = if value >= PERCENT {
        10.0
    } else if value >= 10.0 {
        1.0
    } else {
        0.1
    };
    let decimals = usize::from(value < 10.0);
    format!("{:.decimals$} %", (value / step).ceil() * step)
}
