//! The language of claims: comparisons over figures, for one cell or for all.
//!
//! ```text
//! for all poi in 250|461: duration[subject=HTTP PROBUF] < duration[subject=SOCKET] < 2 * duration[subject=HTTP XML DOM]
//! ```
//!
//! A figure is named by its metric (`_` stands for a space; what holds other characters is put in `'…'`) and by what it
//! must match: columns or factors, `|` between alternatives, a name on its own for a factor that only has to be there. What
//! `for all` binds is matched too, unless a figure names that factor itself, and `$poi` is its value; a name that begins with
//! `$` is a value only. `mean`, `min`, `max`, `sum` and `count` take figures in any number. `and` joins; a comparison may be a
//! chain.

mod parser;

/// A claim that can be judged.
#[derive(Debug, Clone, PartialEq)]
pub enum ClaimExpression {
    /// Every part must hold.
    And(Vec<Self>),
    /// It must hold for every combination of values.
    ForAll(Vec<Binding>, Box<Self>),
    /// Neighbours must compare as written.
    Chain(Term, Vec<(Comparator, Term)>),
}

/// A name and the values that it takes in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The factor or column, or with `$` in front a value that no figure has to match.
    pub name: String,
    /// Its values.
    pub values: Vec<String>,
}

/// How two terms are compared.
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

/// What is compared.
#[derive(Debug, Clone, PartialEq)]
pub enum Term {
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
    /// The value that a name is bound to.
    Variable(String),
    /// The figures that are selected.
    Figures(Selector),
    /// Two terms combined.
    Arithmetic(ArithmeticOperator, Box<Self>, Box<Self>),
    /// A term without its sign.
    Abs(Box<Self>),
    /// Many figures summed up.
    Aggregate(Aggregate, Vec<Self>),
}

/// What is calculated of two terms.
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

/// How many figures become one.
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
    /// How many there are.
    Count,
}

/// Which figures are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    /// The metric.
    pub metric: String,
    /// What must match.
    pub filters: Vec<Filter>,
}

/// A column or factor that must have one of some values; without values it only has to be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The column or factor.
    pub name: String,
    /// The values; `$name` stands for what that name is bound to.
    pub values: Vec<String>,
}

/// Why a claim cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{expected} is wanted at character {at} of the claim")]
pub struct SyntaxError {
    /// What is missing.
    pub expected: &'static str,
    /// Where, counted in characters from 1.
    pub at: usize,
}

impl ClaimExpression {
    /// Reads a claim.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        parser::ClaimParser::new(text).claim()
    }
}

impl Term {
    /// Reads a term.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        parser::ClaimParser::new(text).whole_term()
    }
}

impl Binding {
    /// Reads `name in value|value`, with commas between several; nothing gives none.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, SyntaxError> {
        parser::ClaimParser::new(text).bindings()
    }
}

impl Comparator {
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
