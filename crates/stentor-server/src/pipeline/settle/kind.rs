//! The kind of an outcome: what counters and metrics know of it.

use stentor_core::outcome::{Outcome, Reason};

/// What an outcome is, without its details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutcomeKind {
    /// Taken over.
    Accepted,
    /// Taken over, and the device has a new address.
    Replaced,
    /// Refused for good.
    Rejected,
    /// The token is dead.
    Unregistered,
    /// Asked to slow down.
    Throttled,
    /// Certainly not taken over.
    Unavailable,
    /// Never written.
    Unsent,
    /// Never answered.
    Unknown,
}

impl OutcomeKind {
    /// Returns the word that metrics use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Replaced => "replaced",
            Self::Rejected => "rejected",
            Self::Unregistered => "unregistered",
            Self::Throttled => "throttled",
            Self::Unavailable => "unavailable",
            Self::Unsent => "unsent",
            Self::Unknown => "unknown",
        }
    }
}

/// Returns an outcome's kind and reason.
pub(crate) fn kind_of(outcome: &Outcome) -> (OutcomeKind, Reason) {
    match outcome {
        Outcome::Accepted => (OutcomeKind::Accepted, Reason::None),
        Outcome::Replaced { .. } => (OutcomeKind::Replaced, Reason::None),
        Outcome::Rejected { reason, .. } => (OutcomeKind::Rejected, *reason),
        Outcome::Unregistered { reason, .. } => (OutcomeKind::Unregistered, *reason),
        Outcome::Throttled { .. } => (OutcomeKind::Throttled, Reason::Throttled),
        Outcome::Unavailable { reason, .. } => (OutcomeKind::Unavailable, *reason),
        Outcome::Unsent { reason, .. } => (OutcomeKind::Unsent, *reason),
        Outcome::Unknown => (OutcomeKind::Unknown, Reason::Unanswered),
    }
}

/// Fills up what a provider has noted to one outcome for each delivery: what is missing was never answered. Returns how many
/// were not.
pub(crate) fn fill_unanswered(outcomes: &mut Vec<Outcome>, count: usize) -> usize {
    outcomes.resize(count, Outcome::Unknown);
    outcomes.iter().filter(|outcome| **outcome == Outcome::Unknown).count()
}
