//! Plans of users: read from a file, and checked before anything runs.

use super::{Amount, Experiment, FactorLevel, PlanError, StudyPlan};
use std::collections::BTreeSet;

/// Maximum size of a plan.
pub const PLAN_MAX_BYTES: u64 = 1 << 20;
/// Maximum length of a study's id.
const ID_MAX_LETTERS: usize = 64;
/// Maximum of forks per cell, and of exchanges per fork.
const FORKS_MAX: u32 = 1_000;
const SAMPLES_MAX: u32 = 1_000_000;

impl StudyPlan {
    /// Reads the plan of a user's own study. Fails with a sentence if the study cannot be run as the plan says.
    pub fn own(text: &str) -> Result<Self, PlanError> {
        let plan = Self::parse(text)?;
        match plan.objection() {
            Some(objection) => Err(PlanError::Own(objection)),
            None => Ok(plan),
        }
    }

    /// Returns the first reason against running the plan.
    fn objection(&self) -> Option<String> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        if self.id.is_empty() || self.id.len() > ID_MAX_LETTERS || !self.id.chars().all(is_plain) {
            return Some(format!(
                "its id has 1 to {ID_MAX_LETTERS} letters of a to z, A to Z, 0 to 9, -, _ and ., not {:?}",
                self.id
            ));
        }
        if Self::shipped(&self.id).ok().flatten().is_some() {
            return Some(format!(
                "{} is the id of a published study, whose claims would be judged by it: choose another id",
                self.id
            ));
        }
        if self.campaigns.is_some() {
            return Some("campaigns belong to isikligil-2017 alone: leave them out".to_owned());
        }
        if self.experiments.is_empty() {
            return Some("it has no experiment: add a table [[experiments]]".to_owned());
        }
        let mut ids = BTreeSet::new();
        self.experiments.iter().find_map(|experiment| {
            let is_new = ids.insert(experiment.id.as_str());
            let twice = || format!("two experiments have the id {:?}: change one", experiment.id);
            (!is_new).then(twice).or_else(|| experiment.objection())
        })
    }
}

impl Experiment {
    fn objection(&self) -> Option<String> {
        let of_this = |sentence: String| Some(format!("experiment {:?}: {sentence}", self.id));
        if self.subjects.is_empty() && !self.takes_named {
            return of_this("it has no subjects: add some, or takes_named = true".to_owned());
        }
        for (name, value) in [("interval_ms", self.interval_ms), ("exchange_ms", self.exchange_ms)] {
            if !(0.0..=3_600_000.0).contains(&value) {
                return of_this(format!("{name} is from 0 to 3600000, not {value}"));
            }
        }
        if let Some(factor) = self.factors.iter().find(|factor| factor.levels.is_empty()) {
            return of_this(format!("its factor {:?} has no levels", factor.name));
        }
        let mut links = self
            .factors
            .iter()
            .flat_map(|factor| &factor.levels)
            .filter_map(|one| one.gateway_link.as_deref());
        if let Some(link) = links.find(|link| stentor_rig::Link::profile(link).is_none()) {
            return of_this(format!(
                "there is no link {link:?}: stentor lab link show names those that there are"
            ));
        }
        let mut levels = self.factors.iter().flat_map(|factor| &factor.levels);
        if let Some(level) = levels.find(|level| !level.is_possible()) {
            return of_this(format!(
                "the level {:?} has at most {SAMPLES_MAX} exchanges of warmup, 1 to {SAMPLES_MAX} samples, and an exchange_ms from 0 to 3600000",
                level.level
            ));
        }
        let amounts = [("quick", self.quick), ("standard", self.standard), ("full", self.full)];
        let wrong = amounts.iter().find(|(_, amount)| !amount.is_possible());
        wrong.and_then(|(profile, _)| {
            of_this(format!(
                "{profile} has 1 to {FORKS_MAX} forks, of which forks_min are at least 1, and 1 to {SAMPLES_MAX} samples"
            ))
        })
    }
}

impl FactorLevel {
    fn is_possible(&self) -> bool {
        self.warmup.is_none_or(|warmup| warmup <= SAMPLES_MAX)
            && self.samples.is_none_or(|samples| (1..=SAMPLES_MAX).contains(&samples))
            && self.exchange_ms.is_none_or(|estimate| (0.0..=3_600_000.0).contains(&estimate))
    }
}

impl Amount {
    fn is_possible(self) -> bool {
        (1..=FORKS_MAX).contains(&self.forks)
            && (1..=self.forks).contains(&self.forks_min)
            && (1..=SAMPLES_MAX).contains(&self.samples)
            && self.warmup <= SAMPLES_MAX
            && self.interval_ms.is_none_or(|interval| (0.0..=3_600_000.0).contains(&interval))
    }
}
