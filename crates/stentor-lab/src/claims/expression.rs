//! The language of claims: comparisons over figures, for one cell or for all.
//!
//! ```text
//! for all poi in 250|461: duration[subject=HTTP PROBUF] < duration[subject=SOCKET] < 2 * duration[subject=HTTP XML DOM]
//! ```
//!
//! A figure is selected by its metric and its filters. In the metric `_` stands for a space; a metric with other characters is put in
//! `'…'`. Filters are columns or factors, with `|` between alternatives; a name on its own requires that the factor is present. A name
//! bound by `for all` is also a filter, unless a figure names that factor itself, and `$poi` is its value; a name that begins with `$` is a
//! value only. `mean`, `min`, `max`, `sum` and `count` take any number of figures. `and` joins comparisons; a comparison may be a chain.

mod parser;

/// A claim that can be judged.
#[derive(Debug, Clone, PartialEq)]
pub enum ClaimExpression {
    /// Every part must hold.
    And(Vec<Self>),
    /// It must hold for every combination of values.
    ForAll(Vec<Binding>, Box<Self>),
    /// Adjacent terms must compare as written.
    Chain(Term, Vec<(Comparator, Term)>),
}

/// A name and the values that it takes in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The factor or column; with a leading `$` a mere value, which no figure has to match.
    pub name: String,
    /// Its values.
    pub values: Vec<String>,
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparator {
    /// Less than.
    Less,
    /// Less or equal.
    LessOrEqual,
    /// Greater than.
    Greater,
    /// Greater or equal.
    GreaterOrEqual,
    /// Equal to.
    Equal,
    /// Not equal.
    NotEqual,
}

/// A term of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub enum Term {
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
    /// The value that a name is bound to.
    Variable(String),
    /// Selected figures.
    Figures(Selector),
    /// Two terms combined.
    Arithmetic(ArithmeticOperator, Box<Self>, Box<Self>),
    /// A term without its sign.
    Abs(Box<Self>),
    /// An aggregate of many figures.
    Aggregate(Aggregate, Vec<Self>),
}

/// An arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArithmeticOperator {
    /// Their sum.
    Add,
    /// Their difference.
    Subtract,
    /// Their product.
    Multiply,
    /// Divided by.
    Divide,
}

/// The aggregate function of several figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    /// Arithmetic mean.
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The sum.
    Sum,
    /// The number of figures.
    Count,
}

/// A selection of figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    /// The metric.
    pub metric: String,
    /// Conditions on the figures.
    pub filters: Vec<Filter>,
}

/// A column or factor that must have one of some values; without values it only has to be present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The column or factor.
    pub name: String,
    /// The values; `$name` stands for the value bound to that name.
    pub values: Vec<String>,
}

/// A syntax error in a claim.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{expected} is wanted at character {at} of the claim")]
pub struct SyntaxError {
    /// The expected token.
    pub expected: &'static str,
    /// The position, in characters from 1.
    pub at: usize,
}

impl ClaimExpression {
    /// Returns the number of compared pairs of terms.
    #[must_use]
    pub fn pairs(&self) -> usize {
        match self {
            Self::And(parts) => parts.iter().map(Self::pairs).sum(),
            Self::ForAll(_, inner) => inner.pairs(),
            Self::Chain(_, links) => links.len(),
        }
    }

    /// Parses a claim.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        parser::ClaimParser::new(text).claim()
    }
}

impl Term {
    /// Parses a term.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        parser::ClaimParser::new(text).whole_term()
    }
}

impl Binding {
    /// Parses `name in value|value`, with commas between several; an empty text gives none.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, SyntaxError> {
        parser::ClaimParser::new(text).bindings()
    }
}

impl Comparator {
    /// Compares two numbers as they are.
    #[must_use]
    pub fn is_so(self, left: f64, right: f64) -> bool {
        match self {
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
            Self::Equal => left.total_cmp(&right).is_eq(),
            Self::NotEqual => left.total_cmp(&right).is_ne(),
        }
    }

    /// Returns the sign.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
        }
    }
}
