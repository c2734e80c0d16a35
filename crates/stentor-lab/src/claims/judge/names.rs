//! Names of the sides of a comparison: by what sets the figures of one side apart from those of the other.

use super::super::expression::{Aggregate, ArithmeticOperator, Comparator, Selector, Term};
use super::terms::{Quantity, Scope};

/// Filters that tell where a figure is from, and not what it is of.
const ORIGINS: [&str; 3] = ["source", "kind", "probe"];
/// A divisor that only turns percent into a share.
const PERCENT: f64 = 100.0;

/// The rule for naming the figures of one comparison.
struct Naming<'a> {
    /// Factors that set figures apart.
    factors: Vec<&'a str>,
    /// True if the names begin with the metric.
    has_metric: bool,
    scope: &'a Scope,
}

/// Writes a comparison with the name of each side: once with both values, and once without.
pub(super) fn named(
    [left_term, right_term]: [&Term; 2],
    comparison: Comparator,
    [left, right]: [&Quantity; 2],
    scope: &Scope,
) -> [String; 2] {
    let naming = Naming::of([left_term, right_term], scope);
    let [left_name, right_name] = [left_term, right_term].map(|term| naming.term(term));
    let sign = match comparison {
        Comparator::LessOrEqual => "≤",
        Comparator::GreaterOrEqual => "≥",
        Comparator::Equal => "=",
        Comparator::NotEqual => "≠",
        Comparator::Less | Comparator::Greater => comparison.sign(),
    };
    let with_value = |name: &str, value: &Quantity| format!("{name} {value}").trim_start().to_owned();
    let alone = |name: String, value: &Quantity| if name.is_empty() { value.to_string() } else { name };
    let values = format!("{} {sign} {}", with_value(&left_name, left), with_value(&right_name, right));
    [values, format!("{} {sign} {}", alone(left_name, left), alone(right_name, right))]
}

impl<'a> Naming<'a> {
    fn of(sides: [&'a Term; 2], scope: &'a Scope) -> Self {
        let [left, right] = sides.map(selectors);
        let metrics = |side: &[&'a Selector]| {
            let mut metrics: Vec<&'a str> = side.iter().map(|one| one.metric.as_str()).collect();
            metrics.sort_unstable();
            metrics.dedup();
            metrics
        };
        let are_alike = left.is_empty() || right.is_empty() || metrics(&left) == metrics(&right);
        let all = [left, right].concat();
        let mut naming = Self { factors: filtered(&all), has_metric: !are_alike, scope };
        let own = naming.factors.clone();
        let differ = |factor: &&str| {
            let mut values = all.iter().map(|selector| naming.values(selector, factor));
            values.next().is_some_and(|first| values.any(|value| value != first))
        };
        let telling: Vec<&str> = own.iter().copied().filter(differ).collect();
        let is_told = !telling.is_empty();
        naming.has_metric |= !is_told;
        naming.factors = if is_told { telling } else { own };
        naming
    }

    /// Returns the values of a factor in a selection, or the one that the factor is bound to.
    fn values(&self, selector: &Selector, factor: &str) -> String {
        let value = |value: &String| match value.strip_prefix('$') {
            Some(name) => self.scope.get(name).unwrap_or_default().to_owned(),
            None => value.clone(),
        };
        let own = selector.filters.iter().find(|filter| filter.name == factor);
        let own = own.map(|filter| filter.values.iter().map(value).collect::<Vec<_>>().join(", "));
        own.unwrap_or_else(|| self.scope.get(factor).unwrap_or_default().to_owned())
    }

    /// Names a term; empty for numbers and words, which are their own names.
    fn term(&self, term: &Term) -> String {
        match term {
            Term::Number(_) | Term::Word(_) | Term::Variable(_) => String::new(),
            Term::Figures(selector) => self.figures(selector),
            Term::Abs(inner) => format!("|{}|", self.term(inner)),
            Term::Aggregate(aggregate, terms) => {
                let names: Vec<String> = terms.iter().map(|term| self.term(term)).collect();
                format!("{} of {}", word(*aggregate), names.join(", "))
            }
            Term::Arithmetic(operation, left, right) => self.arithmetic(*operation, left, right),
        }
    }

    fn arithmetic(&self, operation: ArithmeticOperator, left: &Term, right: &Term) -> String {
        if matches!(right, Term::Number(number) if *number == PERCENT) {
            return self.term(left);
        }
        let [left_name, right_name] = [left, right].map(|term| match term {
            Term::Number(number) => number.to_string(),
            _ => self.term(term),
        });
        let is_of_numbers = selectors(left).is_empty() && selectors(right).is_empty();
        if is_of_numbers {
            String::new()
        } else if left_name == right_name {
            left_name
        } else {
            format!("{left_name} {} {right_name}", sign(operation))
        }
    }

    fn figures(&self, selector: &Selector) -> String {
        let values = self.factors.iter().map(|factor| self.values(selector, factor));
        let values = values.filter(|value| !value.is_empty()).collect::<Vec<_>>().join(" ");
        let metric = selector.metric.replace('_', " ");
        match (self.has_metric, values.is_empty()) {
            (_, true) => metric,
            (true, false) => format!("{metric} of {values}"),
            (false, false) => values,
        }
    }
}

/// Lists the selections of a term.
fn selectors(term: &Term) -> Vec<&Selector> {
    match term {
        Term::Figures(selector) => vec![selector],
        Term::Abs(inner) => selectors(inner),
        Term::Aggregate(_, terms) => terms.iter().flat_map(selectors).collect(),
        Term::Arithmetic(_, left, right) => [selectors(left), selectors(right)].concat(),
        Term::Number(_) | Term::Word(_) | Term::Variable(_) => Vec::new(),
    }
}

/// Lists the factors that selections name.
fn filtered<'a>(selectors: &[&'a Selector]) -> Vec<&'a str> {
    let mut factors: Vec<&str> = Vec::new();
    for filter in selectors.iter().flat_map(|selector| &selector.filters) {
        if !ORIGINS.contains(&filter.name.as_str()) && !factors.contains(&filter.name.as_str()) {
            factors.push(&filter.name);
        }
    }
    factors
}

const fn word(aggregate: Aggregate) -> &'static str {
    match aggregate {
        Aggregate::Mean => "mean",
        Aggregate::Min => "min",
        Aggregate::Max => "max",
        Aggregate::Sum => "sum",
        Aggregate::Count => "count",
    }
}

const fn sign(operation: ArithmeticOperator) -> &'static str {
    match operation {
        ArithmeticOperator::Add => "+",
        ArithmeticOperator::Subtract => "−",
        ArithmeticOperator::Multiply => "×",
        ArithmeticOperator::Divide => "÷",
    }
}
