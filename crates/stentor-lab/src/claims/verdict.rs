//! What figures say of a claim.

use serde::{Deserialize, Serialize};

/// What figures say of a claim.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// It is as claimed.
    Holds,
    /// Some of it is the other way round.
    DoesNotHold,
    /// Some of it is too close to call, none is the other way round.
    Undecided,
    /// A figure is missing, or cannot say.
    #[default]
    NotTestable,
}

impl ClaimVerdict {
    /// Returns the word for people.
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
