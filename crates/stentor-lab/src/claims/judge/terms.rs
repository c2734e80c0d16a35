//! Evaluation of terms: figures are selected, aggregated and combined.

use super::super::expression::{Aggregate, ArithmeticOperator, Filter, Selector, Term};
use super::super::figures::{Figure, FigureValue, Interval};
use super::{Bench, JudgeError, JudgeStop};
use crate::statistics::Replicate;
use std::collections::BTreeSet;
use std::fmt;

/// Columns that describe where a paper prints a figure.
const OF_PAPERS: [&str; 2] = ["source", "kind"];
/// Maximum of counted figures named beside a count.
const WITNESSES_MAX: usize = 6;

/// The scope of a term: the values bound to names, and the replicates of which measured figures are the mean.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    names: Vec<(String, String)>,
    /// `None` for all replicates.
    within: Option<BTreeSet<Replicate>>,
}

/// The value of a term.
#[derive(Debug, Clone)]
pub(super) enum Quantity {
    /// A number, with the figures counted for it.
    Number { value: Interval, witnesses: Vec<String> },
    /// A word, with the number of forks that agree on it if it is an outcome.
    Word { word: String, forks: Option<u32> },
}

impl Scope {
    pub(super) fn of(bound: &[(String, String)]) -> Self {
        Self { names: bound.to_vec(), within: None }
    }

    pub(super) fn with(&self, bound: &[(String, String)]) -> Self {
        Self { names: self.names.iter().chain(bound).cloned().collect(), within: self.within.clone() }
    }

    /// Returns the same scope over some replicates alone.
    pub(super) fn within(&self, replicates: BTreeSet<Replicate>) -> Self {
        Self { names: self.names.clone(), within: Some(replicates) }
    }

    /// Returns a figure's number; of a figure with replicates, their mean in this scope.
    fn number(&self, figure: &Figure, value: Interval) -> Interval {
        let mean = self.within.as_ref().and_then(|within| figure.replicates.geometric_mean_within(within));
        mean.map_or(value, Interval::point)
    }

    pub(super) fn get(&self, name: &str) -> Result<&str, JudgeError> {
        let bound = self.names.iter().rev().find(|(known, _)| known.trim_start_matches('$') == name);
        bound.map(|(_, value)| value.as_str()).ok_or_else(|| JudgeError::Unbound(name.to_owned()))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.names.iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&parts.join("; "))
    }
}

impl Quantity {
    /// Returns the least p of a comparison with this quantity: the probability that so many forks agree if either outcome is as likely.
    pub(super) fn p_min(&self) -> f64 {
        match self {
            Self::Word { forks: Some(forks), .. } => 0.5_f64.powi(i32::try_from(*forks).unwrap_or(i32::MAX)),
            Self::Word { forks: None, .. } | Self::Number { .. } => 0.0,
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word { word, .. } => f.write_str(word),
            Self::Number { value, witnesses } if witnesses.is_empty() => write!(f, "{value}"),
            Self::Number { value, witnesses } => {
                let more = if witnesses.len() > WITNESSES_MAX { ", …" } else { "" };
                let shown = &witnesses[..witnesses.len().min(WITNESSES_MAX)];
                write!(f, "{value} ({}{more})", shown.join(", "))
            }
        }
    }
}

impl Bench<'_> {
    /// Evaluates a term to a number or a word.
    pub(super) fn quantity(&self, term: &Term, scope: &Scope) -> Result<Quantity, JudgeStop> {
        let mut forks = None;
        let word = match term {
            Term::Word(word) => word.clone(),
            Term::Variable(name) => scope.get(name)?.to_owned(),
            Term::Figures(selector) => {
                let figure = self.one(selector, scope)?;
                match &figure.value {
                    FigureValue::Word(word) => {
                        forks = figure.forks;
                        word.clone()
                    }
                    FigureValue::Number(value) => {
                        comparable(figure)?;
                        let value = scope.number(figure, *value);
                        return Ok(Quantity::Number { value, witnesses: Vec::new() });
                    }
                    FigureValue::Absent => return Err(absent(figure)),
                }
            }
            Term::Aggregate(Aggregate::Count, terms) => return self.count(terms, scope),
            _ => return Ok(Quantity::Number { value: self.number(term, scope)?, witnesses: Vec::new() }),
        };
        let number = word.parse().ok().filter(|number: &f64| number.is_finite());
        Ok(match number {
            Some(number) => Quantity::Number { value: Interval::point(number), witnesses: Vec::new() },
            None => Quantity::Word { word, forks },
        })
    }

    /// Evaluates a term that must be a number.
    pub(super) fn number(&self, term: &Term, scope: &Scope) -> Result<Interval, JudgeStop> {
        match term {
            Term::Number(number) => Ok(Interval::point(*number)),
            Term::Arithmetic(operation, left, right) => {
                let (left, right) = (self.number(left, scope)?, self.number(right, scope)?);
                Ok(left.combine(right, |left, right| operation.apply(left, right)))
            }
            Term::Abs(inner) => Ok(self.number(inner, scope)?.abs()),
            Term::Aggregate(aggregate, terms) if *aggregate != Aggregate::Count => {
                let mut numbers = Vec::new();
                for term in terms {
                    numbers.extend(self.numbers(term, scope)?);
                }
                Ok(aggregate.apply(&numbers))
            }
            _ => match self.quantity(term, scope)? {
                Quantity::Number { value, .. } => Ok(value),
                Quantity::Word { word, .. } => Err(JudgeError::NotANumber(word).into()),
            },
        }
    }

    /// Evaluates a term of an aggregate, which may select many figures.
    fn numbers(&self, term: &Term, scope: &Scope) -> Result<Vec<Interval>, JudgeStop> {
        let Term::Figures(selector) = term else { return Ok(vec![self.number(term, scope)?]) };
        let found = self.found(selector, scope)?;
        if found.is_empty() || self.lacks_an_alternative(selector, &found) {
            return Err(self.nothing(selector, scope));
        }
        let number = |figure: &&Figure| match &figure.value {
            FigureValue::Number(value) => comparable(figure).map(|()| scope.number(figure, *value)),
            FigureValue::Word(word) => Err(JudgeError::NotANumber(word.clone()).into()),
            FigureValue::Absent => Err(absent(figure)),
        };
        found.iter().map(number).collect()
    }

    /// Returns true if measurements lack one of the alternatives that a selector names, so that an aggregate would be of the others.
    fn lacks_an_alternative(&self, selector: &Selector, found: &[&Figure]) -> bool {
        let has = |name: &str, value: &String| found.iter().any(|figure| figure.field(name) == Some(value));
        let lacks = |filter: &Filter| {
            let mut alternatives = filter.values.iter().filter(|value| !value.starts_with('$'));
            filter.values.len() > 1 && alternatives.any(|value| !has(&filter.name, value))
        };
        let mut filters = selector.filters.iter().filter(|one| !OF_PAPERS.contains(&one.name.as_str()));
        !self.complete && filters.any(lacks)
    }

    /// Lists the figures of a term, without those that are only counted.
    pub(super) fn figures_of(&self, term: &Term, scope: &Scope) -> Result<Vec<&Figure>, JudgeStop> {
        let of_all = |terms: &[&Term]| {
            let figures = terms.iter().map(|term| self.figures_of(term, scope));
            Ok(figures.collect::<Result<Vec<_>, JudgeStop>>()?.concat())
        };
        match term {
            Term::Figures(selector) => self.found(selector, scope),
            Term::Arithmetic(_, left, right) => of_all(&[left, right]),
            Term::Abs(inner) => self.figures_of(inner, scope),
            Term::Aggregate(aggregate, terms) if *aggregate != Aggregate::Count => {
                of_all(&terms.iter().collect::<Vec<_>>())
            }
            Term::Aggregate(..) | Term::Word(_) | Term::Number(_) | Term::Variable(_) => Ok(Vec::new()),
        }
    }

    fn count(&self, terms: &[Term], scope: &Scope) -> Result<Quantity, JudgeStop> {
        let mut witnesses = Vec::new();
        for term in terms {
            let Term::Figures(selector) = term else {
                return Err(JudgeError::NotANumber("the argument of count".into()).into());
            };
            // A count of zero in figures without this metric means that it was not measured.
            if !self.complete && self.figures.iter().all(|figure| figure.metric != selector.metric) {
                return Err(self.nothing(selector, scope));
            }
            witnesses.extend(self.found(selector, scope)?.into_iter().map(witness));
        }
        Ok(Quantity::Number { value: Interval::point(witnesses.len() as f64), witnesses })
    }

    fn one(&self, selector: &Selector, scope: &Scope) -> Result<&Figure, JudgeStop> {
        match self.found(selector, scope)?[..] {
            [] => Err(self.nothing(selector, scope)),
            [figure] => Ok(figure),
            _ => Err(JudgeError::Ambiguous(describe(selector, scope)).into()),
        }
    }

    fn found(&self, selector: &Selector, scope: &Scope) -> Result<Vec<&Figure>, JudgeStop> {
        let mut filters = Vec::new();
        for Filter { name, values } in &selector.filters {
            if !self.complete && OF_PAPERS.contains(&name.as_str()) {
                continue;
            }
            let value = |value: &String| match value.strip_prefix('$') {
                Some(variable) => scope.get(variable).map(str::to_owned),
                None => Ok(value.clone()),
            };
            filters.push((name.as_str(), values.iter().map(value).collect::<Result<Vec<_>, _>>()?));
        }
        let named = |name: &str| filters.iter().any(|(other, _)| *other == name);
        let free: Vec<_> =
            scope.names.iter().filter(|(name, _)| !name.starts_with('$') && !named(name)).collect();
        let fits = |figure: &&Figure| {
            figure.metric == selector.metric
                && (named("kind") || figure.kind != "derived")
                && free.iter().all(|(name, value)| figure.field(name) == Some(value))
                && filters.iter().all(|(name, values)| passes(figure, name, values))
        };
        Ok(self.figures.iter().filter(fits).collect())
    }

    fn nothing(&self, selector: &Selector, scope: &Scope) -> JudgeStop {
        let what = describe(selector, scope);
        if self.complete { JudgeStop::Wrong(JudgeError::NoMatch(what)) } else { JudgeStop::Missing(what) }
    }
}

/// Stops if a figure does not represent its metric.
fn comparable(figure: &Figure) -> Result<(), JudgeStop> {
    figure.objection().map_or(Ok(()), |why| Err(JudgeStop::Missing(why.to_owned())))
}

/// Returns the reason for a missing value: it is in a picture only, or was not measured.
fn absent(figure: &Figure) -> JudgeStop {
    JudgeStop::Missing(format!("{}: {figure}", figure.kind))
}

fn passes(figure: &Figure, name: &str, values: &[String]) -> bool {
    figure.field(name).is_some_and(|field| values.is_empty() || values.iter().any(|value| value == field))
}

/// Returns the shortest name that distinguishes a counted figure from its neighbours.
fn witness(figure: &Figure) -> String {
    if let Some(id) = figure.field("id") {
        return id.to_owned();
    }
    let factors: Vec<&str> = figure.factors.values().map(String::as_str).collect();
    if factors.is_empty() { figure.subject.clone() } else { factors.join(" ") }
}

fn describe(selector: &Selector, scope: &Scope) -> String {
    let filters = selector.filters.iter().map(|filter| {
        if filter.values.is_empty() {
            filter.name.clone()
        } else {
            format!("{}={}", filter.name, filter.values.join("|"))
        }
    });
    let filters: Vec<String> = filters.collect();
    let inside = scope.to_string();
    let inside = if inside.is_empty() { inside } else { format!(" for {inside}") };
    format!("{}[{}]{inside}", selector.metric, filters.join(", "))
}

impl ArithmeticOperator {
    fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
        }
    }
}

impl Aggregate {
    /// Aggregates numbers, bound by bound; `numbers` holds at least one.
    fn apply(self, numbers: &[Interval]) -> Interval {
        let reduce = |bound: fn(&Interval) -> f64| {
            let values = numbers.iter().map(bound);
            match self {
                Self::Min => values.fold(f64::INFINITY, f64::min),
                Self::Max => values.fold(f64::NEG_INFINITY, f64::max),
                Self::Sum => values.sum(),
                Self::Mean => values.sum::<f64>() / numbers.len() as f64,
                Self::Count => numbers.len() as f64,
            }
        };
        Interval { low: reduce(|one| one.low), value: reduce(|one| one.value), high: reduce(|one| one.high) }
    }
}
