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
    /// The result follows from a setting of the experiment, so that measurements say nothing about the claim.
    SetByExperiment,
    /// A figure is missing or unusable.
    #[default]
    NotTestable,
}

impl ClaimVerdict {
    /// All verdicts, in the order of a tally.
    pub const ALL: [Self; 5] =
        [Self::DoesNotHold, Self::Holds, Self::Undecided, Self::SetByExperiment, Self::NotTestable];

    /// Returns true if figures decided the claim.
    #[must_use]
    pub const fn is_decided(self) -> bool {
        matches!(self, Self::Holds | Self::DoesNotHold)
    }

    /// Returns true if measurements bear on the claim.
    #[must_use]
    pub const fn is_tested(self) -> bool {
        !matches!(self, Self::NotTestable | Self::SetByExperiment)
    }

    /// Returns the word for display.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::Undecided => "undecided",
            Self::SetByExperiment => "set by the experiment",
            Self::NotTestable => "not testable",
        }
    }
}
