//! Rules as data, and their evaluation for a request.

use super::evidence::EvidenceVerdict;
use super::{AdviceRequest, ClaimedFigures, Reason};
use crate::claims::ClaimVerdict;
use crate::claims::ClaimsError;
use serde::Deserialize;

const TEXT: &str = include_str!("rules.toml");

/// A finding of a study on some choices under some conditions.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    /// Choices that it concerns.
    pub(super) choices: Vec<String>,
    /// Minimum payload.
    #[serde(default)]
    payload_min_bytes: u64,
    /// Maximum payload.
    payload_max_bytes: Option<u64>,
    /// It applies below this rate of messages per second.
    below_per_second: Option<f64>,
    /// If set, it applies only to links whose radio stays awake after a message.
    #[serde(default)]
    link_has_tail: bool,
    /// Points, if the claim behind it holds and its criterion has the usual weight.
    points: f64,
    /// The criterion that weights the points; without one they count in full.
    weighed_by: Option<Concern>,
    /// The reason.
    text: String,
    /// Study and claim behind it, separated by a space.
    pub(super) claim: Option<String>,
    /// The part of the claim that bears on the choice, as a check.
    pub(super) part: Option<String>,
}

/// A criterion of the request.
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
    /// Returns the reason for or against a choice; `None` if the rule does not apply.
    pub(super) fn reason(
        &self,
        wish: &AdviceRequest,
        choice: &str,
        known: &ClaimedFigures,
    ) -> Option<Reason> {
        let weight = self.weight(wish);
        // A criterion without weight is not reported.
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
            ours: ours.map(|evidence| evidence.verdict),
            part: ours.and_then(|evidence| evidence.part.clone()),
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

/// Returns the weight of a claim: our measurements decide if there are any, else the paper's own tables.
fn credit(published: Option<ClaimVerdict>, ours: Option<&EvidenceVerdict>) -> f64 {
    match ours.map(|evidence| evidence.verdict).or(published) {
        None | Some(ClaimVerdict::Holds) => 1.0,
        Some(ClaimVerdict::Undecided | ClaimVerdict::SetByExperiment | ClaimVerdict::NotTestable) => 0.5,
        Some(ClaimVerdict::DoesNotHold) => 0.0,
    }
}
