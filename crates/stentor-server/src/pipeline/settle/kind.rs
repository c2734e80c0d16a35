//! The kind of an outcome, for counters and metrics.

use stentor_core::outcome::{Outcome, Reason};

/// An outcome without its details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutcomeKind {
    /// Accepted by the push service.
    Accepted,
    /// Accepted, and the device has a new token.
    Replaced,
    /// Permanently refused.
    Rejected,
    /// The token is no longer registered.
    Unregistered,
    /// Throttled: the push service requested a lower rate.
    Throttled,
    /// Certainly not accepted.
    Unavailable,
    /// Never sent.
    Unsent,
    /// Deferred by one of the push services behind a provider.
    Deferred,
    /// Never answered.
    Unknown,
}

impl OutcomeKind {
    /// Returns the label used in metrics.
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
            Self::Deferred => "deferred",
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
        Outcome::Deferred { reason, .. } => (OutcomeKind::Deferred, *reason),
        Outcome::Unknown => (OutcomeKind::Unknown, Reason::Unanswered),
    }
}

/// Extends the outcomes to one for each delivery; missing ones count as unanswered. Returns the number of unanswered deliveries.
pub(crate) fn fill_unanswered(outcomes: &mut Vec<Outcome>, count: usize) -> usize {
    outcomes.resize(count, Outcome::Unknown);
    outcomes.iter().filter(|outcome| **outcome == Outcome::Unknown).count()
}
