//! Rules as data, and the evaluator that applies them to a wish.

use super::evidence::EvidenceVerdict;
use super::{AdviceRequest, ClaimedFigures, Reason};
use crate::claims::ClaimVerdict;
use crate::claims::ClaimsError;
use serde::Deserialize;

const TEXT: &str = include_str!("rules.toml");

/// What a study says of some choices under some conditions.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    /// Choices that it speaks of.
    pub(super) choices: Vec<String>,
    /// It applies from so many bytes on.
    #[serde(default)]
    payload_min_bytes: u64,
    /// It applies up to so many bytes.
    payload_max_bytes: Option<u64>,
    /// It applies below so many messages a second.
    below_per_second: Option<f64>,
    /// It applies only to links whose radio stays awake after a message.
    #[serde(default)]
    link_has_tail: bool,
    /// Points, if the claim behind it holds and the wish weighs as usual.
    points: f64,
    /// By which wish points are weighed; in full without one.
    weighed_by: Option<Concern>,
    /// The reason.
    text: String,
    /// Study and claim behind it, with a space between.
    pub(super) claim: Option<String>,
    /// The part of the claim that bears on the choice, as a check.
    pub(super) part: Option<String>,
}

/// What somebody may care about.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Concern {
    Correctness,
    Openness,
    Energy,
}

#[derive(Deserialize)]
struct RulesFile {
    rules: Vec<Rule>,
}

/// Returns every rule.
pub(super) fn rules() -> Result<Vec<Rule>, ClaimsError> {
    Ok(toml::from_str::<RulesFile>(TEXT)?.rules)
}

impl Rule {
    /// Returns what it says of a choice; `None` where it does not apply.
    pub(super) fn reason(
        &self,
        wish: &AdviceRequest,
        choice: &str,
        known: &ClaimedFigures,
    ) -> Option<Reason> {
        let weight = self.weight(wish);
        // What nobody asked about is not told.
        if weight == 0.0 || !self.applies(wish, choice) {
            return None;
        }
        let found = self.claim.as_ref().and_then(|claim| known.get(claim));
        let ours = found.and_then(|one| one.ours.as_ref());
        let published = found.map(|one| one.published);
        Some(Reason {
            points: self.points * weight * credit(published, ours),
            text: self.text.clone(),
            claim: self.claim.clone(),
            says: found.map(|one| one.says.clone()),
            published,
            ours: ours.map(|told| told.verdict),
            part: ours.and_then(|told| told.part.clone()),
        })
    }

    fn applies(&self, wish: &AdviceRequest, choice: &str) -> bool {
        self.choices.iter().any(|one| one == choice)
            && wish.payload_bytes >= self.payload_min_bytes
            && self.payload_max_bytes.is_none_or(|most| wish.payload_bytes <= most)
            && self.below_per_second.is_none_or(|limit| wish.per_second < limit)
            && (wish.link.has_tail || !self.link_has_tail)
    }

    fn weight(&self, wish: &AdviceRequest) -> f64 {
        self.weighed_by.map_or(1.0, |concern| match concern {
            Concern::Correctness => wish.correctness.points(),
            Concern::Openness => wish.openness.points(),
            Concern::Energy => wish.energy.points(),
        })
    }
}

/// How much a claim counts: measurements of ours decide where there are some, else the paper's own tables.
fn credit(published: Option<ClaimVerdict>, ours: Option<&EvidenceVerdict>) -> f64 {
    match ours.map(|told| told.verdict).or(published) {
        None | Some(ClaimVerdict::Holds) => 1.0,
        Some(ClaimVerdict::Undecided | ClaimVerdict::NotTestable) => 0.5,
        Some(ClaimVerdict::DoesNotHold) => 0.0,
    }
}
