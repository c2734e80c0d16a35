//! Answers written down in advance, token by token.

use super::ScriptedAnswer;
use crate::dice::mix;
use crate::observer::token_hash;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;

const SHARDS: usize = 16;
const SHARE_SALT: u64 = 0x7368_6172_6520_6f66;
/// The denominator of a share of tokens.
pub(super) const MILLION: u64 = 1_000_000;

/// A list of answers for one token or for every token with a prefix, each token at its own place in the list.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// The token, exactly.
    pub token: Option<String>,
    /// A prefix of the token; an empty prefix means every token.
    pub prefix: Option<String>,
    /// The share of matching tokens, per million, chosen by the token itself; all of them if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_million: Option<u32>,
    /// The answers in their order.
    pub answers: Vec<ScriptStep>,
    /// The answer after the list has ended.
    pub then: ScriptedAnswer,
}

/// One line of a script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptStep {
    /// The answer.
    pub answer: ScriptedAnswer,
    /// The number of times in a row.
    #[serde(default = "once")]
    pub times: u32,
}

fn once() -> u32 {
    1
}

/// Shows the answers, never the token.
impl fmt::Debug for Script {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Script");
        shown.field("answers", &self.answers).field("then", &self.then).finish_non_exhaustive()
    }
}

impl Script {
    /// Returns true if the script applies to a token. The result for a token is independent of the seed, and the tokens of a smaller share
    /// are among those of a larger one. APNs tokens are passed in lower case.
    #[must_use]
    pub fn is_about(&self, token: &str) -> bool {
        self.fits(token) && self.tokens_per_million.is_none_or(|share| place(token) < u64::from(share))
    }

    fn fits(&self, token: &str) -> bool {
        self.token.as_deref() == Some(token)
            || self.prefix.as_deref().is_some_and(|prefix| token.starts_with(prefix))
    }

    pub(super) fn is_about_too_many(&self) -> bool {
        self.tokens_per_million.is_some_and(|share| u64::from(share) > MILLION)
    }

    pub(super) fn at(&self, mut position: u32) -> &ScriptedAnswer {
        for step in &self.answers {
            if position < step.times {
                return &step.answer;
            }
            position -= step.times;
        }
        &self.then
    }

    pub(super) fn verdicts(&self) -> impl Iterator<Item = &ScriptedAnswer> {
        self.answers.iter().map(|step| &step.answer).chain([&self.then])
    }
}

/// Returns the place of a token among a million, from 0; unrelated to where its counts are kept.
fn place(token: &str) -> u64 {
    mix(token_hash(token.as_bytes()) ^ SHARE_SALT) % MILLION
}

/// The position of each token in its script.
#[derive(Debug, Default)]
pub(super) struct ScriptPlaces([Mutex<HashMap<u64, u32>>; SHARDS]);

impl ScriptPlaces {
    /// Returns the token's place and moves it on by one.
    pub(super) fn advance(&self, token_hash: u64) -> u32 {
        let shard = &self.0[token_hash as usize % SHARDS];
        let mut places = shard.lock();
        let place = places.entry(token_hash).or_default();
        let now = *place;
        *place = place.saturating_add(1);
        now
    }
}
