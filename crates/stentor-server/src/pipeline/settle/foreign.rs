//! Tokens of another sender: one is the token's affair, all of an audience are the credential's.

use stentor_core::device::ProviderKind;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::ports::store::LeasedChunk;

use crate::pipeline::settle::evidence::ProviderStanding;

/// Fewest refusals of a payload that end the campaign at a provider; a chance few must not decide for a million.
pub(super) const STOP_MIN_ANSWERS: u64 = 10;
/// Attempts after which few tokens of another sender are rejected each for itself.
const FOREIGN_MAX_ATTEMPTS: u16 = 4;

/// What it means when every device that is answered for belongs to another sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Foreign {
    /// The token is.
    Token,
    /// Too few of an audience were seen: the next of them will tell.
    Unclear,
    /// The credential is.
    Credential,
}

/// Returns what a batch says about its tokens and the credential.
pub(super) fn foreign(chunk: &LeasedChunk, outcomes: &[Outcome], standing: ProviderStanding) -> Foreign {
    let is_mute = |outcome: &Outcome| {
        !matches!(
            outcome,
            Outcome::Accepted
                | Outcome::Replaced { .. }
                | Outcome::Unregistered { .. }
                | Outcome::Rejected { .. }
        )
    };
    let any = outcomes.iter().any(|outcome| is_foreign(chunk.provider, outcome));
    let all = any && outcomes.iter().all(|outcome| is_mute(outcome) || is_foreign(chunk.provider, outcome));
    let is_wide = chunk.tally.sum() >= STOP_MIN_ANSWERS;
    match () {
        () if !all => Foreign::Token,
        () if standing.is_suspected => Foreign::Credential,
        () if !is_wide => Foreign::Token,
        () if standing.is_disproved && !standing.accepts_nothing => Foreign::Token,
        () if u64::from(standing.foreign_in_a_row) >= foreign_to_suspect(chunk, standing) => {
            Foreign::Credential
        }
        () if chunk.tally.accepted == 0 && chunk.attempt < FOREIGN_MAX_ATTEMPTS => Foreign::Unclear,
        () => Foreign::Token,
    }
}

/// Returns how many in a row speak against a credential: more where it has been good for the same audience.
fn foreign_to_suspect(chunk: &LeasedChunk, standing: ProviderStanding) -> u64 {
    match () {
        () if chunk.tally.accepted > 0 => 2 * STOP_MIN_ANSWERS,
        () if standing.is_probe => 1,
        () => STOP_MIN_ANSWERS,
    }
}

/// Counts the answers that say that a token belongs to another sender.
pub(crate) fn count_foreign(provider: ProviderKind, outcomes: &[Outcome]) -> u32 {
    let foreign = outcomes.iter().filter(|outcome| is_foreign(provider, outcome));
    u32::try_from(foreign.count()).unwrap_or(u32::MAX)
}

/// Some push services say of every token of another environment that it is invalid; elsewhere an invalid token is just that.
pub(crate) fn is_foreign(provider: ProviderKind, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Rejected { reason: Reason::SenderMismatch, .. } => true,
        Outcome::Rejected { reason: Reason::InvalidToken, scope: OutcomeScope::Device } => {
            stentor_providers::descriptor(provider).confuses_environments
        }
        _ => false,
    }
}
