//! Verdicts on claims.

use serde::{Deserialize, Serialize};

/// The verdict of figures on a claim.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// All comparisons hold.
    Holds,
    /// At least one comparison is contradicted.
    DoesNotHold,
    /// At least one comparison is too close to call, and none is contradicted.
    Undecided,
    /// A figure is missing or unusable.
    #[default]
    NotTestable,
}

impl ClaimVerdict {
    /// Returns the word for display.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::Undecided => "undecided",
            Self::NotTestable => "not testable",
        }
    }
}
