//! Claims of published studies as executable checks, over the paper's own tables and over measurements.
//!
//! A [`Dossier`] holds a study's figures and its claims. No result is hard-coded: each verdict is recomputed, and compared with the verdict
//! recorded when the claim was written down.

pub mod agreement;
pub mod expression;
pub mod figures;
pub mod judge;
mod paper_figure;
mod shipped;
mod verdict;

use crate::statistics::{Effect, factorial};
use expression::{Binding, ClaimExpression, SyntaxError, Term};
use figures::{Figures, FiguresError, Interval};
use judge::{Bench, Compared, JudgeError, Judgment, combinations};
use serde::{Deserialize, Serialize};

pub use paper_figure::PaperFigure;
pub use shipped::STUDIES;
pub use verdict::ClaimVerdict;

/// Percent of a whole.
const PERCENT: f64 = 100.0;
/// Relative difference below which two measured figures count as equal.
pub(crate) const BAND_SHARE: f64 = 0.05;
/// Confidence of intervals.
const CONFIDENCE: f64 = 0.95;

/// Errors of reading and judging the claims of a study.
#[derive(Debug, thiserror::Error)]
pub enum ClaimsError {
    /// The file of claims is invalid TOML.
    #[error("the claims cannot be read: {0}")]
    Definition(#[from] toml::de::Error),
    /// The figures cannot be read.
    #[error(transparent)]
    Figures(#[from] FiguresError),
    /// A check has a syntax error.
    #[error("{id}: {source}")]
    Syntax {
        /// The claim or the derived number.
        id: String,
        /// The syntax error.
        source: SyntaxError,
    },
    /// A check cannot be evaluated.
    #[error("{id}: {source}")]
    Judge {
        /// The claim or the derived number.
        id: String,
        /// The cause.
        source: JudgeError,
    },
    /// A factorial needs two levels of each factor, and a figure for each cell.
    #[error("{0}: a factorial needs two levels of each factor and a figure in each cell")]
    Factorial(String),
    /// A body whose bytes advice counts cannot be written.
    #[error("a body for {choice} cannot be written: {source}")]
    Body {
        /// What it was written for.
        choice: String,
        /// What is wrong.
        source: stentor_wire::WireError,
    },
}

/// A study: its figures, its claims and the numbers derived from the figures.
#[derive(Debug, Clone)]
pub struct Dossier {
    definition: StudyFile,
    figures: Figures,
}

/// The identity of a study.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Name and year.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its authors.
    pub authors: String,
    /// Year of publication.
    pub year: u16,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct StudyFile {
    study: Paper,
    claims: Vec<Statement>,
    /// Expectations about measurements beyond the paper.
    #[serde(default)]
    expected: Vec<Expectation>,
    #[serde(default)]
    derived: Vec<Derivation>,
    #[serde(default)]
    factorials: Vec<FactorialSpec>,
    #[serde(default)]
    figures: Vec<paper_figure::FigureSpec>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expectation {
    question: String,
    id: String,
    kind: String,
    text: String,
    checks: Vec<String>,
}

/// A sentence of a paper.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// Its id.
    pub id: String,
    /// A descriptive name, if it has one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The kind of claim: an order, a ratio, a range, a trend, a crossover, an outcome, a threshold, a feature, a mechanism, or a
    /// comparison of two places of the text.
    pub kind: String,
    /// Its place in the paper, and the tables that bear on it.
    pub source: String,
    /// The claim in our words.
    pub text: String,
    /// The paper's sentence, or the row of its table, from which the claim is taken.
    pub quote: String,
    /// Checks over the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// Checks over measurements, used if the paper's figures cannot be obtained elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<String>,
    /// The setting from which the result of measurements follows, whatever it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub constructed: String,
    /// The setting from which a contradiction by measurements would follow; it leaves a confirmation as it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub constructed_against: String,
    /// The basis of its measurements if they come from no run: probes of features, and their significance.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub basis: String,
    /// Tie threshold in percent of the larger number: closer numbers count as undecided.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tie_percent: f64,
    /// True if the claim concerns the paper's own numbers, so that other measurements cannot bear on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub about_paper: bool,
    /// True if the paper does not say it, but takes it for granted: a check of its consistency.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implied: bool,
    /// The reason for having no check, or none by measurement.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What a verdict by measurements would need, if none is possible here.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub needs: String,
    /// The verdict of the paper's own tables at the time the claim was written down.
    #[serde(rename = "published")]
    pub recorded: ClaimVerdict,
    /// A remark.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Derivation {
    id: String,
    text: String,
    #[serde(default)]
    each: String,
    value: String,
    unit: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct FactorialSpec {
    name: String,
    response: String,
    factors: String,
}

/// A claim with its verdicts.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The claim.
    pub statement: Statement,
    /// The judgment by the paper's own tables.
    pub published: Judgment,
    /// The judgment by our measurements; `None` without measurements.
    pub ours: Option<Judgment>,
    /// Our verdicts at each setting, if a run was judged at several.
    pub at_settings: Vec<SettingVerdicts>,
}

/// Our verdicts on a claim at one setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingVerdicts {
    /// The levels that differ between the settings.
    pub setting: String,
    /// The verdict with the period's software.
    pub period: ClaimVerdict,
    /// The verdict with today's software in its place.
    pub modern: ClaimVerdict,
}

/// A number derived from the figures.
#[derive(Debug, Clone, Serialize)]
pub struct Derived {
    /// Its id.
    pub id: String,
    /// Its description.
    pub text: String,
    /// The cell that it belongs to, as `name=value; name=value`.
    pub cell: String,
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: String,
}

/// The effects on one response.
#[derive(Debug, Clone, Serialize)]
pub struct Analysis {
    /// The response.
    pub response: String,
    /// Its effects.
    pub effects: Vec<Effect>,
}

impl Dossier {
    /// Reads the study with an id; `None` when there is no such study.
    pub fn open(id: &str) -> Result<Option<Self>, ClaimsError> {
        let Some((claims, figures)) = shipped::files(id) else { return Ok(None) };
        Self::read(claims, figures).map(Some)
    }

    /// Reads a study from its claims and its files of figures.
    pub fn read(claims: &str, files: &[&str]) -> Result<Self, ClaimsError> {
        let mut figures = Figures::default();
        for file in files {
            figures.extend(Figures::parse(file)?);
        }
        Ok(Self { definition: toml::from_str(claims)?, figures })
    }

    /// Returns the study's identity.
    #[must_use]
    pub const fn paper(&self) -> &Paper {
        &self.definition.study
    }

    /// Returns its figures.
    #[must_use]
    pub const fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Judges every claim by the paper's own figures, and by measurements if given.
    pub fn judge(&self, measured: Option<&Figures>) -> Result<Vec<Judged>, ClaimsError> {
        let judge = |statement: &Statement| {
            let published = statement.judge(&self.figures, true)?;
            let ours = measured.map(|figures| statement.judge_measured(figures)).transpose()?;
            Ok(Judged { statement: statement.clone(), published, ours, at_settings: Vec::new() })
        };
        self.definition.claims.iter().map(judge).collect()
    }

    /// Judges the expectations beyond the paper by measurements. Each judgment is paired with its question.
    pub fn expected(&self, measured: &Figures) -> Result<Vec<(String, Judged)>, ClaimsError> {
        let judge = |one: &Expectation| {
            let statement = Statement::of(one);
            let ours = Some(statement.judge_measured(measured)?);
            let published = Judgment::not_testable(&statement.why);
            Ok((one.question.clone(), Judged { statement, published, ours, at_settings: Vec::new() }))
        };
        self.definition.expected.iter().map(judge).collect()
    }

    /// Computes the numbers derived from the paper's figures.
    pub fn derive(&self) -> Result<Vec<Derived>, ClaimsError> {
        let mut derived = Vec::new();
        for derivation in &self.definition.derived {
            derived.extend(derivation.derive(&self.figures)?);
        }
        Ok(derived)
    }

    /// Analyses the paper's factorial designs.
    pub fn analyse(&self) -> Result<Vec<Analysis>, ClaimsError> {
        self.definition.factorials.iter().map(|factorial| factorial.analyse(&self.figures)).collect()
    }
}

/// Judges a single check by measurements alone.
pub fn judge_measured(check: &str, figures: &Figures) -> Result<Judgment, ClaimsError> {
    let claim = ClaimExpression::parse(check)
        .map_err(|source| ClaimsError::Syntax { id: check.to_owned(), source })?;
    let bench = Bench { figures, complete: false, tie_share: 0.0, band_share: BAND_SHARE };
    bench.judge(&[claim]).map_err(|source| ClaimsError::Judge { id: check.to_owned(), source })
}

impl Statement {
    /// Makes a statement from an expectation of ours, which no paper states.
    fn of(expected: &Expectation) -> Self {
        let Expectation { id, kind, text, checks, .. } = expected.clone();
        Self { id, kind, text, checks, why: "the paper did not run it".to_owned(), ..Self::default() }
    }

    /// Returns true if the claim is decided by probes instead of a run.
    #[must_use]
    pub const fn is_probed(&self) -> bool {
        !self.basis.is_empty()
    }

    fn judge_measured(&self, figures: &Figures) -> Result<Judgment, ClaimsError> {
        if self.about_paper {
            let why = if self.why.is_empty() { "it speaks of the paper's own numbers" } else { &self.why };
            return Ok(Judgment::not_testable(why));
        }
        let judgment = self.judge(figures, false)?;
        let setting = self.setting_behind(judgment.verdict).map(str::to_owned);
        let verdict = setting.as_ref().map_or(judgment.verdict, |_| ClaimVerdict::SetByExperiment);
        Ok(Judgment { verdict, missing: setting.or(judgment.missing), ..judgment })
    }

    /// Returns the setting from which a verdict by measurements follows, if one does.
    fn setting_behind(&self, verdict: ClaimVerdict) -> Option<&str> {
        let setting = match verdict {
            ClaimVerdict::NotTestable => "",
            ClaimVerdict::DoesNotHold if self.constructed.is_empty() => &self.constructed_against,
            _ => &self.constructed,
        };
        (!setting.is_empty()).then_some(setting)
    }

    fn judge(&self, figures: &Figures, complete: bool) -> Result<Judgment, ClaimsError> {
        let has_own = !complete && !self.measured.is_empty();
        let checks = if has_own { &self.measured } else { &self.checks };
        if checks.is_empty() {
            return Ok(Judgment::not_testable(&self.why));
        }
        let claims: Result<Vec<_>, _> = checks.iter().map(|check| ClaimExpression::parse(check)).collect();
        let claims = claims.map_err(|source| ClaimsError::Syntax { id: self.id.clone(), source })?;
        let band_share = if complete { 0.0 } else { BAND_SHARE };
        let bench = Bench { figures, complete, tie_share: self.tie_percent / PERCENT, band_share };
        bench.judge(&claims).map_err(|source| ClaimsError::Judge { id: self.id.clone(), source })
    }
}

impl Judged {
    /// Returns true if the tables still give the recorded verdict.
    #[must_use]
    pub fn is_as_recorded(&self) -> bool {
        self.published.verdict == self.statement.recorded
    }

    /// Returns true if the paper's own tables contradict the claim.
    #[must_use]
    pub fn is_contradicted(&self) -> bool {
        self.published.verdict == ClaimVerdict::DoesNotHold
    }
}

impl Judgment {
    fn not_testable(why: &str) -> Self {
        Self {
            verdict: ClaimVerdict::NotTestable,
            comparisons: Vec::new(),
            missing: Some(why.to_owned()),
            power: None,
        }
    }

    /// Returns true if the verdict rests on numbers that no run varied, so that chance has no part in it.
    #[must_use]
    pub fn is_deterministic(&self) -> bool {
        let mut comparisons = self.comparisons.iter();
        match self.verdict {
            ClaimVerdict::Holds => !self.comparisons.is_empty() && comparisons.all(|one| one.is_exact),
            ClaimVerdict::DoesNotHold => self.failures().any(|one| one.is_exact),
            _ => false,
        }
    }

    /// Returns the least p that the outcomes of so few forks allow; zero if the verdict rests on numbers.
    #[must_use]
    pub fn p_min(&self) -> f64 {
        let bounds = |compared: &Compared| compared.p_min;
        match self.verdict {
            ClaimVerdict::DoesNotHold => self.failures().map(bounds).fold(1.0, f64::min),
            _ => self.comparisons.iter().map(bounds).fold(0.0, f64::max),
        }
    }

    /// Lists the comparisons that contradict the claim.
    pub fn failures(&self) -> impl Iterator<Item = &Compared> {
        self.comparisons.iter().filter(|one| one.is_so == Some(false))
    }
}

impl Derivation {
    fn derive(&self, figures: &Figures) -> Result<Vec<Derived>, ClaimsError> {
        let wrong = |source| ClaimsError::Syntax { id: self.id.clone(), source };
        let each = Binding::parse_list(&self.each).map_err(wrong)?;
        let term = Term::parse(&self.value).map_err(wrong)?;
        let derive = |bound: Vec<(String, String)>| {
            let value = work_out(figures, &self.id, &term, &bound)?;
            let cell =
                bound.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ");
            let Self { id, text, unit, .. } = self.clone();
            Ok(Derived { id, text, cell, value, unit })
        };
        combinations(&each).into_iter().map(derive).collect()
    }
}

impl FactorialSpec {
    fn analyse(&self, figures: &Figures) -> Result<Analysis, ClaimsError> {
        let wrong = |source| ClaimsError::Syntax { id: self.name.clone(), source };
        let factors = Binding::parse_list(&self.factors).map_err(wrong)?;
        let term = Term::parse(&self.response).map_err(wrong)?;
        // In `combinations` the last name varies fastest; effects need the first to.
        let reversed: Vec<Binding> = factors.iter().rev().cloned().collect();
        let cells = combinations(&reversed);
        // A paper prints one mean for each cell.
        let response = |bound: &Vec<_>| {
            work_out(figures, &self.name, &term, bound).map(|one| [one].into_iter().collect())
        };
        let responses: Result<Vec<_>, _> = cells.iter().map(response).collect();
        let names: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
        let has_two_levels = factors.iter().all(|factor| factor.values.len() == 2);
        let found = if has_two_levels { factorial(&names, &responses?, CONFIDENCE) } else { None };
        let found = found.ok_or_else(|| ClaimsError::Factorial(self.name.clone()))?;
        Ok(Analysis { response: self.name.clone(), effects: found.effects })
    }
}

fn work_out(
    figures: &Figures,
    id: &str,
    term: &Term,
    bound: &[(String, String)],
) -> Result<f64, ClaimsError> {
    let bench = Bench { figures, complete: true, tie_share: 0.0, band_share: 0.0 };
    let value =
        bench.value(term, bound).map_err(|source| ClaimsError::Judge { id: id.to_owned(), source })?;
    value.map(|Interval { value, .. }| value).ok_or_else(|| ClaimsError::Judge {
        id: id.to_owned(),
        source: JudgeError::NoMatch("a value that is printed in a picture only".into()),
    })
}

fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

#[cfg(test)]
mod tests;
