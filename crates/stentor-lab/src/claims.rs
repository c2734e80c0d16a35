//! What published studies say, as checks that a machine can make: over the paper's own tables, and over measurements.
//!
//! A [`Dossier`] holds a study's figures and its claims. Nothing here knows a result: each verdict is worked out anew, and
//! compared with the one that was recorded when the claim was written down.

pub mod expression;
pub mod figures;
pub mod judge;
mod shipped;
mod verdict;

use crate::statistics::{Effect, factorial};
use expression::{Binding, ClaimExpression, SyntaxError, Term};
use figures::{Figures, FiguresError, Interval};
use judge::{Bench, Compared, JudgeError, Judgment, combinations};
use serde::{Deserialize, Serialize};

pub use shipped::STUDIES;
pub use verdict::ClaimVerdict;

/// Percent of a whole.
const PERCENT: f64 = 100.0;
/// Measured figures that may differ by less than this share are not told apart.
const BAND_SHARE: f64 = 0.05;
/// Confidence of intervals.
const CONFIDENCE: f64 = 0.95;

/// Why the claims of a study cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum ClaimsError {
    /// The file of claims is no such TOML.
    #[error("the claims cannot be read: {0}")]
    Definition(#[from] toml::de::Error),
    /// The figures cannot be read.
    #[error(transparent)]
    Figures(#[from] FiguresError),
    /// A check is not written in the language of claims.
    #[error("{id}: {source}")]
    Syntax {
        /// The claim, or what is derived.
        id: String,
        /// What is wrong.
        source: SyntaxError,
    },
    /// A check asks for what cannot be.
    #[error("{id}: {source}")]
    Judge {
        /// The claim, or what is derived.
        id: String,
        /// What is wrong.
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

/// A study: its figures, its claims, and what follows from the figures.
#[derive(Debug, Clone)]
pub struct Dossier {
    definition: StudyFile,
    figures: Figures,
}

/// Which study it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Name and year.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Who wrote it.
    pub authors: String,
    /// When it was published.
    pub year: u16,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct StudyFile {
    study: Paper,
    claims: Vec<Statement>,
    /// What is to be expected of measurements beyond the paper.
    #[serde(default)]
    expected: Vec<Expectation>,
    #[serde(default)]
    derived: Vec<Derivation>,
    #[serde(default)]
    factorials: Vec<FactorialSpec>,
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
    /// A name that says more than the id, where it has one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What it speaks of: an order, a ratio, a range, a trend, a crossover, an outcome, a threshold, a feature, a mechanism,
    /// or one place of the text against another.
    pub kind: String,
    /// Where it stands, and which tables bear on it.
    pub source: String,
    /// What it says, in our words.
    pub text: String,
    /// What it says, in the paper's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub quote: String,
    /// What must hold of the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// What must hold of measurements, where the paper's figures are not of a kind that anybody else can have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<String>,
    /// What measurements of it rest on, where that is no run: probes of features, and what those are worth.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub basis: String,
    /// Numbers closer than this count as undecided, in percent of the larger.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tie_percent: f64,
    /// True when it speaks of the paper's own numbers, so that measurements of others cannot bear on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub about_paper: bool,
    /// Why there is no check, or none by measurement.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The verdict of the paper's own tables when the claim was written down.
    #[serde(rename = "published")]
    pub recorded: ClaimVerdict,
    /// What else is to be known.
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

/// A claim and what came of it.
#[derive(Debug, Clone)]
pub struct Judged {
    /// What the paper says.
    pub statement: Statement,
    /// What its own tables say.
    pub published: Judgment,
    /// What our measurements say; `None` when there are none.
    pub ours: Option<Judgment>,
}

/// A number that follows from the figures.
#[derive(Debug, Clone, Serialize)]
pub struct Derived {
    /// Its id.
    pub id: String,
    /// What it is.
    pub text: String,
    /// Of what, as `name=value; name=value`.
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

    /// Returns which study it is.
    #[must_use]
    pub const fn paper(&self) -> &Paper {
        &self.definition.study
    }

    /// Returns its figures.
    #[must_use]
    pub const fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Judges every claim by the paper's own figures, and by measurements where there are some.
    pub fn judge(&self, measured: Option<&Figures>) -> Result<Vec<Judged>, ClaimsError> {
        let judge = |statement: &Statement| {
            let published = statement.judge(&self.figures, true)?;
            let ours = measured.map(|figures| statement.judge_measured(figures)).transpose()?;
            Ok(Judged { statement: statement.clone(), published, ours })
        };
        self.definition.claims.iter().map(judge).collect()
    }

    /// Judges by measurements what is expected beyond the paper, each under the question that it belongs to.
    pub fn expected(&self, measured: &Figures) -> Result<Vec<(String, Judged)>, ClaimsError> {
        let judge = |one: &Expectation| {
            let statement = Statement::of(one);
            let ours = Some(statement.judge_measured(measured)?);
            let published = Judgment::not_testable(&statement.why);
            Ok((one.question.clone(), Judged { statement, published, ours }))
        };
        self.definition.expected.iter().map(judge).collect()
    }

    /// Works out what follows from the paper's figures.
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
    /// Makes one of ours, of which no paper says anything.
    fn of(expected: &Expectation) -> Self {
        let Expectation { id, kind, text, checks, .. } = expected.clone();
        Self { id, kind, text, checks, why: "the paper did not run it".to_owned(), ..Self::default() }
    }

    /// Returns whether probes decide it, and no run.
    #[must_use]
    pub const fn is_probed(&self) -> bool {
        !self.basis.is_empty()
    }

    fn judge_measured(&self, figures: &Figures) -> Result<Judgment, ClaimsError> {
        if self.about_paper {
            let why = if self.why.is_empty() { "it speaks of the paper's own numbers" } else { &self.why };
            return Ok(Judgment::not_testable(why));
        }
        self.judge(figures, false)
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
    /// Returns whether the tables still say what they said when the claim was written down.
    #[must_use]
    pub fn is_as_recorded(&self) -> bool {
        self.published.verdict == self.statement.recorded
    }

    /// Returns whether the paper's own tables speak against it.
    #[must_use]
    pub fn is_contradicted(&self) -> bool {
        self.published.verdict == ClaimVerdict::DoesNotHold
    }
}

impl Judgment {
    fn not_testable(why: &str) -> Self {
        Self { verdict: ClaimVerdict::NotTestable, comparisons: Vec::new(), missing: Some(why.to_owned()) }
    }

    /// Lists what spoke against the claim.
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
        // The last name turns fastest, and effects want the first to.
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
        source: JudgeError::NoMatch("what is printed in a picture only".into()),
    })
}

fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

#[cfg(test)]
mod tests;
