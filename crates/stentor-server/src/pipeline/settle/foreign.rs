//! Tokens of another sender: a single one is a problem of the token, an audience full of them is a problem of the credential.

use stentor_core::device::ProviderKind;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::ports::store::LeasedChunk;

use crate::pipeline::settle::evidence::ProviderStanding;

/// Fewest refusals of a payload that end the campaign at a provider, so that a few chance refusals do not stop a large audience.
pub(super) const STOP_MIN_ANSWERS: u64 = 10;
/// Attempts after which a few tokens of another sender are rejected individually.
const FOREIGN_MAX_ATTEMPTS: u16 = 4;

/// The meaning of answers that all tokens belong to another sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Foreign {
    /// The token is wrong.
    Token,
    /// Too few of the audience were answered; the next ones will decide.
    Unclear,
    /// The credential is wrong.
    Credential,
}

/// Decides for a batch if its tokens or the credential are wrong.
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

/// Returns the number of such answers in a row that count against a credential: more if it was good for the same audience.
fn foreign_to_suspect(chunk: &LeasedChunk, standing: ProviderStanding) -> u64 {
    match () {
        () if chunk.tally.accepted > 0 => 2 * STOP_MIN_ANSWERS,
        () if standing.is_probe => 1,
        () => STOP_MIN_ANSWERS,
    }
}

/// Counts the answers that a token belongs to another sender.
pub(crate) fn count_foreign(provider: ProviderKind, outcomes: &[Outcome]) -> u32 {
    let foreign = outcomes.iter().filter(|outcome| is_foreign(provider, outcome));
    u32::try_from(foreign.count()).unwrap_or(u32::MAX)
}

/// Returns true if an answer means that the token belongs to another sender. Some push services report a token of another environment as
/// invalid; at the others an invalid token is only that.
pub(crate) fn is_foreign(provider: ProviderKind, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Rejected { reason: Reason::SenderMismatch, .. } => true,
        Outcome::Rejected { reason: Reason::InvalidToken, scope: OutcomeScope::Device } => {
            stentor_providers::descriptor(provider).confuses_environments
        }
        _ => false,
    }
}
