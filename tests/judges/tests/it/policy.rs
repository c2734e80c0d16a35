//! Scripts for chosen tokens.

use stentor_emulators::policy::{Policy, Script, ScriptStep, ScriptedAnswer, ServiceError};

/// Returns a policy that accepts every token without a script.
pub(crate) fn scripted(scripts: Vec<Script>) -> Policy {
    Policy { scripts, ..Policy::default() }
}

/// Refuses a token each time.
pub(crate) fn always(token: &str, refusal: ServiceError) -> Script {
    Script { token: Some(token.to_owned()), then: ScriptedAnswer::Error(refusal), ..Script::default() }
}

/// Refuses a token the first times, then accepts it.
pub(crate) fn first(times: u32, token: &str, refusal: ServiceError) -> Script {
    let step = ScriptStep { answer: ScriptedAnswer::Error(refusal), times };
    Script { token: Some(token.to_owned()), answers: vec![step], ..Script::default() }
}
