//! Scripts for chosen tokens.

use stentor_emulators::policy::{Policy, Refusal, Script, ScriptStep, Verdict};

/// Returns a policy that accepts every token without a script.
pub(crate) fn scripted(scripts: Vec<Script>) -> Policy {
    Policy { scripts, ..Policy::default() }
}

/// Refuses a token each time.
pub(crate) fn always(token: &str, refusal: Refusal) -> Script {
    Script { token: Some(token.to_owned()), then: Verdict::Error(refusal), ..Script::default() }
}

/// Refuses a token the first times, then accepts it.
pub(crate) fn first(times: u32, token: &str, refusal: Refusal) -> Script {
    let step = ScriptStep { answer: Verdict::Error(refusal), times };
    Script { token: Some(token.to_owned()), answers: vec![step], ..Script::default() }
}
