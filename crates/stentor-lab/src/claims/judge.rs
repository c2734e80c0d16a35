//! Judging: a claim and figures give a verdict, with every comparison that led to it.

mod evidence;
mod grade;
mod names;
mod power;
mod terms;

use super::expression::{Binding, ClaimExpression, Comparator, Term};
use super::figures::{Figure, Figures, Interval};
use crate::claims::ClaimVerdict;
use serde::Serialize;
use std::collections::BTreeSet;
use terms::{Quantity, Scope};

pub use evidence::Evidence;
pub(crate) use grade::CELLS;
pub use grade::Grade;
pub use power::VerdictPower;

/// Relative difference below which numbers are equal, because they were printed with fewer digits.
const EQUAL_SHARE: f64 = 1e-9;
/// Significance level of a comparison by measurements; claims of a study are corrected for their number (`results::verdicts`).
const LEVEL: f64 = 0.05;

/// The judgment of a claim.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgment {
    /// The verdict.
    pub verdict: ClaimVerdict,
    /// The comparisons, in order.
    pub comparisons: Vec<Compared>,
    /// The missing knowledge, if it is not testable; the setting, if it is set by the experiment.
    pub missing: Option<String>,
    /// The difference that it could have seen; `None` if chance has no part in it.
    pub power: Option<VerdictPower>,
}

/// One comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// The bound values, as `name=value; name=value`; empty outside `for all`.
    pub cell: String,
    /// Both sides as numbers or words, with the operator between them.
    pub text: String,
    /// `text` with the name of each side, such as `REST 55 < SOAP 127`.
    #[serde(skip)]
    pub named: String,
    /// The names of both sides without their values, such as `REST < SOAP`.
    #[serde(skip)]
    pub relation: String,
    /// True if the comparison holds; `None` if the figures leave it open.
    pub is_so: Option<bool>,
    /// True if the estimates alone are so, however unsure they are.
    #[serde(skip)]
    pub points_so: bool,
    /// The number of the compared pair of terms, which `for all` repeats in every cell.
    #[serde(skip)]
    pub pair: usize,
    /// The evidence of measurements; `None` if there are no replicates.
    #[serde(skip)]
    pub evidence: Option<Evidence>,
    /// True if measured numbers are compared that are the same in every fork.
    #[serde(skip)]
    pub is_exact: bool,
    /// The least p that the number of forks behind a compared outcome allows; zero for numbers.
    #[serde(skip)]
    pub p_min: f64,
}

/// Errors that make a claim impossible to judge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JudgeError {
    /// No figure matches, although all figures are present.
    #[error("no figure matches {0}")]
    NoMatch(String),
    /// One figure is required and several match.
    #[error("several figures match {0}")]
    Ambiguous(String),
    /// A name is not bound.
    #[error("${0} is not bound")]
    Unbound(String),
    /// A word is used where a number is required.
    #[error("{0} is not a number")]
    NotANumber(String),
}

/// The figures and tolerances for judging claims.
#[derive(Debug, Clone, Copy)]
pub struct Bench<'a> {
    /// The figures.
    pub figures: &'a Figures,
    /// True if every claim must find its figures, as in the paper's own tables. Measurements may be incomplete, and come from no table, so
    /// that `source` and `kind` are ignored for them.
    pub complete: bool,
    /// Numbers that differ by at most this share of the larger count as undecided.
    pub tie_share: f64,
    /// Measured numbers whose ratio may be within this share of one count as undecided.
    pub band_share: f64,
}

/// The reason for stopping a judgment.
enum JudgeStop {
    Missing(String),
    Wrong(JudgeError),
}

impl From<JudgeError> for JudgeStop {
    fn from(error: JudgeError) -> Self {
        Self::Wrong(error)
    }
}

impl Bench<'_> {
    /// Judges claims that must all hold.
    pub fn judge(&self, claims: &[ClaimExpression]) -> Result<Judgment, JudgeError> {
        let mut comparisons = Vec::new();
        let mut pair = 0;
        for claim in claims {
            match self.claim(claim, pair, &Scope::default(), &mut comparisons) {
                Ok(()) => pair += claim.pairs(),
                Err(JudgeStop::Wrong(error)) => return Err(error),
                Err(JudgeStop::Missing(what)) => {
                    return Ok(Judgment {
                        verdict: ClaimVerdict::NotTestable,
                        comparisons,
                        missing: Some(what),
                        power: None,
                    });
                }
            }
        }
        Ok(Judgment { verdict: verdict(&comparisons), comparisons, missing: None, power: None })
    }

    /// Evaluates a term; `None` if a figure is missing.
    pub fn value(&self, term: &Term, bound: &[(String, String)]) -> Result<Option<Interval>, JudgeError> {
        match self.number(term, &Scope::of(bound)) {
            Ok(number) => Ok(Some(number)),
            Err(JudgeStop::Missing(_)) => Ok(None),
            Err(JudgeStop::Wrong(error)) => Err(error),
        }
    }

    /// Adds the comparisons of a claim; `pair` is the number of its first pair of terms.
    fn claim(
        &self,
        claim: &ClaimExpression,
        mut pair: usize,
        scope: &Scope,
        compared: &mut Vec<Compared>,
    ) -> Result<(), JudgeStop> {
        match claim {
            ClaimExpression::And(parts) => parts.iter().try_for_each(|part| {
                self.claim(part, pair, scope, compared)?;
                pair += part.pairs();
                Ok(())
            }),
            ClaimExpression::ForAll(bindings, inner) => combinations(bindings)
                .iter()
                .try_for_each(|bound| self.claim(inner, pair, &scope.with(bound), compared)),
            ClaimExpression::Chain(first, links) => {
                let mut left = (first, self.quantity(first, scope)?);
                let mut counted = self.counted(first, scope)?;
                for (comparison, right) in links {
                    counted.extend(self.counted(right, scope)?);
                    all_alike(&counted)?;
                    let right = (right, self.quantity(right, scope)?);
                    let found = self.compare(&left, *comparison, &right, scope)?;
                    compared.push(Compared { pair, ..found });
                    (left, pair) = (right, pair + 1);
                }
                Ok(())
            }
        }
    }

    /// Lists the counted quantities of the term's figures that are comparable with their like only.
    fn counted(&self, term: &Term, scope: &Scope) -> Result<BTreeSet<&str>, JudgeStop> {
        Ok(self.figures_of(term, scope)?.into_iter().filter_map(Figure::alike).collect())
    }

    /// Compares two terms, each with its quantity.
    fn compare(
        &self,
        (left_term, left): &(&Term, Quantity),
        comparison: Comparator,
        (right_term, right): &(&Term, Quantity),
        scope: &Scope,
    ) -> Result<Compared, JudgeStop> {
        let p_min = left.p_min().max(right.p_min());
        let text = format!("{left} {} {right}", comparison.sign());
        let [named, relation] = names::named([left_term, right_term], comparison, [left, right], scope);
        let (Quantity::Number { value: one, .. }, Quantity::Number { value: other, .. }) = (left, right)
        else {
            let is_so = compare_words(&left.to_string(), comparison, &right.to_string())?;
            let points_so = is_so == Some(true);
            return Ok(Compared {
                cell: scope.to_string(),
                text,
                named,
                relation,
                is_so,
                points_so,
                pair: 0,
                evidence: None,
                is_exact: false,
                p_min,
            });
        };
        let evidence = if self.complete { None } else { self.evidence([left_term, right_term], scope)? };
        let is_so = match evidence.as_ref().filter(|evidence| evidence.has_chance()) {
            Some(_) if self.are_tied(*one, comparison, *other) => None,
            Some(evidence) => evidence.decide(comparison),
            None => self.ordered(*one, comparison, *other),
        };
        let points_so = comparison.is_so(one.value, other.value);
        let is_exact = !self.complete && one.is_exact() && other.is_exact();
        let cell = scope.to_string();
        Ok(Compared { cell, text, named, relation, is_so, points_so, pair: 0, evidence, is_exact, p_min })
    }

    /// Returns true if numbers are too close for an order, by the claim's own threshold.
    fn are_tied(&self, left: Interval, comparison: Comparator, right: Interval) -> bool {
        let is_equality = matches!(comparison, Comparator::Equal | Comparator::NotEqual);
        self.tie_share > 0.0 && gap(left, right) <= self.tie_share && !is_equality
    }

    /// Compares numbers; `None` if they are too close or their intervals overlap.
    fn ordered(&self, left: Interval, comparison: Comparator, right: Interval) -> Option<bool> {
        if self.are_tied(left, comparison, right) {
            return None;
        }
        let below = |left, right| below(left, right, self.band_share);
        match comparison {
            Comparator::Less => below(left, right),
            Comparator::Greater => below(right, left),
            Comparator::LessOrEqual => below(right, left).map(|more| !more),
            Comparator::GreaterOrEqual => below(left, right).map(|less| !less),
            Comparator::Equal => same(left, right),
            Comparator::NotEqual => same(left, right).map(|same| !same),
        }
    }
}

impl Evidence {
    /// Decides a comparison in which chance has a part; `None` if chance may have made the difference.
    fn decide(&self, comparison: Comparator) -> Option<bool> {
        let is_below = || (self.p() <= LEVEL).then_some(self.difference.log_ratio < 0.0);
        match comparison {
            Comparator::Less | Comparator::LessOrEqual => is_below(),
            Comparator::Greater | Comparator::GreaterOrEqual => is_below().map(|is_below| !is_below),
            Comparator::Equal => self.are_apart().then_some(false),
            Comparator::NotEqual => self.are_apart().then_some(true),
        }
    }

    fn are_apart(&self) -> bool {
        self.difference.p_beyond(0.0) <= LEVEL
    }
}

/// Stops if figures of different quantities would be compared.
fn all_alike(counted: &BTreeSet<&str>) -> Result<(), JudgeStop> {
    if counted.len() < 2 {
        return Ok(());
    }
    let named: Vec<&str> = counted.iter().copied().collect();
    Err(JudgeStop::Missing(format!("different quantities cannot be compared: {}", named.join("; "))))
}

/// Returns true if the left number is certainly below the right, false if it certainly is not, else `None`. Two measured numbers must be
/// further apart than the band; numbers without intervals are compared as they are.
pub(crate) fn below(left: Interval, right: Interval, band_share: f64) -> Option<bool> {
    let are_measured = left.low < left.high && right.low < right.high;
    let factor = if are_measured { 1.0 + band_share } else { 1.0 };
    if surely_below(left, right, factor) {
        Some(true)
    } else if surely_below(right, left, factor) || left.low >= right.high {
        Some(false)
    } else {
        None
    }
}

/// Returns true if `factor` times the left number is certainly below the right. The interval of the difference is recovered from both
/// intervals (MOVER: Zou and Donner, Statistics in Medicine 27, 2008), so the difference can be certain although the intervals overlap a
/// little.
fn surely_below(left: Interval, right: Interval, factor: f64) -> bool {
    let gap = right.value - factor * left.value;
    let doubt = (right.value - right.low).hypot(factor * (left.high - left.value));
    gap > doubt
}

/// Returns the difference of two numbers as a share of the larger.
fn gap(left: Interval, right: Interval) -> f64 {
    (left.value - right.value).abs() / left.value.abs().max(right.value.abs()).max(f64::MIN_POSITIVE)
}

fn same(left: Interval, right: Interval) -> Option<bool> {
    let apart = left.high < right.low || right.high < left.low;
    let points = left.low >= left.high && right.low >= right.high;
    if gap(left, right) <= EQUAL_SHARE && points {
        Some(true)
    } else if apart {
        Some(false)
    } else {
        None
    }
}

fn compare_words(left: &str, comparison: Comparator, right: &str) -> Result<Option<bool>, JudgeError> {
    match comparison {
        Comparator::Equal => Ok(Some(left == right)),
        Comparator::NotEqual => Ok(Some(left != right)),
        _ => Err(JudgeError::NotANumber(left.to_owned())),
    }
}

fn verdict(comparisons: &[Compared]) -> ClaimVerdict {
    if comparisons.iter().any(|one| one.is_so == Some(false)) {
        ClaimVerdict::DoesNotHold
    } else if comparisons.iter().any(|one| one.is_so.is_none()) {
        ClaimVerdict::Undecided
    } else {
        ClaimVerdict::Holds
    }
}

/// Lists every combination of bound values; the last name varies fastest.
pub(super) fn combinations(bindings: &[Binding]) -> Vec<Vec<(String, String)>> {
    bindings.iter().fold(vec![Vec::new()], |rows, binding| {
        let with = |row: &Vec<(String, String)>, value: &String| {
            let mut row = row.clone();
            row.push((binding.name.clone(), value.clone()));
            row
        };
        rows.iter()
            .flat_map(|row| binding.values.iter().map(|value| with(row, value)).collect::<Vec<_>>())
            .collect()
    })
}
