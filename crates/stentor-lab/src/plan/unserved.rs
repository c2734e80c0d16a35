//! Parts of a study that the server itself cannot run as a subject: reported if it is selected, rejected if nothing else is selected.

use super::{Factor, FactorLevel, NotRun, PlanChoice, PlanError, StudyPlan};
use crate::subject::{SERVED, SERVED_STACK};
use serde::{Deserialize, Serialize};

/// Levels that do not apply to the server itself, with the reason.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnservedPart {
    /// The factor; the whole study if empty.
    #[serde(default)]
    pub factor: String,
    /// Its levels; all if empty.
    #[serde(default)]
    pub levels: Vec<String>,
    /// The reason, in a sentence.
    pub reason: String,
}

impl UnservedPart {
    /// Returns the entry for the list of parts that are not run.
    #[must_use]
    pub fn not_run(&self) -> NotRun {
        NotRun { what: self.label_text(), reason: self.reason.clone() }
    }

    /// Returns true if this part includes a level.
    pub(super) fn has(&self, factor: &Factor, level: &FactorLevel) -> bool {
        self.factor == factor.name && self.has_level(&level.level)
    }

    fn has_level(&self, level: &str) -> bool {
        self.levels.is_empty() || self.levels.iter().any(|one| one == level)
    }

    fn label_text(&self) -> String {
        let rest = [self.factor.clone(), self.levels.join(", ")];
        let rest = rest.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        if rest.is_empty() { "the server itself".to_owned() } else { format!("the server itself at {rest}") }
    }
}

impl PlanChoice {
    /// Returns true if the server itself is among the selected subjects.
    pub(super) fn names_server(&self) -> bool {
        self.subjects.iter().any(|wish| is_server(wish))
    }
}

impl StudyPlan {
    /// Rejects a selection of the server alone if none of the selected levels applies to it.
    pub(super) fn check_served(&self, choice: &PlanChoice) -> Result<(), PlanError> {
        if choice.subjects.is_empty() || !choice.subjects.iter().all(|wish| is_server(wish)) {
            return Ok(());
        }
        let is_wished_whole = |part: &&UnservedPart| {
            let levels = choice.factors.get(&part.factor);
            part.factor.is_empty()
                || levels.is_some_and(|levels| levels.iter().all(|level| part.has_level(level)))
        };
        self.unserved.iter().find(is_wished_whole).map_or(Ok(()), |part| {
            let (study, part, reason) = (self.id.clone(), part.label_text(), part.reason.clone());
            Err(PlanError::Unserved { study, part, reason })
        })
    }
}

fn is_server(wish: &str) -> bool {
    wish == SERVED_STACK || wish.ends_with(SERVED)
}
