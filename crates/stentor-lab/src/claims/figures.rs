//! Figures in the long format: one per line, each with its source, its conditions and its interval.

use std::collections::BTreeMap;
use std::fmt;

use crate::statistics::Replicates;

/// Seconds of a minute, and minutes of an hour.
const SIXTY: f64 = 60.0;

/// Digits of a printed figure.
const DIGITS_PRINTED: i32 = 5;
/// Digits of a measured figure and its bounds.
const DIGITS_MEASURED: i32 = 3;
/// The kind of a measured figure that does not represent its metric, because phases overlap; its note states the reason.
pub const OVERLAPPING: &str = "overlapping";
/// The kind of a figure that rests on traces cut by the clock and not by exchange; its note states the consequence.
pub const CUT_BY_CLOCK: &str = "cut by clock";
/// The kind of a figure that a model computed; its note states the reason for which it decides no claim.
pub const MODELLED: &str = "modelled";
/// Prefix of the kind of a measured figure that is comparable with its like only; the counted quantity follows.
pub const ALIKE: &str = "measured: ";
/// An interval narrower than this share of its estimate is one of equal numbers, apart from rounding.
const EXACT_SHARE: f64 = 1e-9;
/// An interval that exceeds its estimate by this factor carries no information.
const OPEN: f64 = 1e6;

/// Errors of reading a file of figures.
#[derive(Debug, thiserror::Error)]
pub enum FiguresError {
    /// Invalid CSV.
    #[error("the figures cannot be read: {0}")]
    Csv(#[from] csv::Error),
    /// A figure of ours has bounds that do not enclose it.
    #[error("line {line} of the figures: low, value and high must be numbers in this order")]
    Bounds {
        /// Line of the file, from 1.
        line: u64,
    },
}

/// Figures of one study.
#[derive(Debug, Clone, Default)]
pub struct Figures(Vec<Figure>);

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Table, figure or section.
    pub source: String,
    /// The part of the study.
    pub experiment: String,
    /// The measured subject: a protocol, a framework.
    pub subject: String,
    /// The other conditions, by name.
    pub factors: BTreeMap<String, String>,
    /// The measured quantity.
    pub metric: String,
    /// The statistic.
    pub stat: String,
    /// The figure.
    pub value: FigureValue,
    /// Its unit.
    pub unit: String,
    /// `published`, `derived`, `in figure only`, `not measured`, or, for our own figures, `measured`, [`OVERLAPPING`], [`CUT_BY_CLOCK`],
    /// or [`ALIKE`] and the counted quantity.
    pub kind: String,
    /// A remark.
    pub note: String,
    /// The values behind a figure of ours, by replicate; empty for figures that were read from a file.
    pub replicates: Replicates,
    /// The number of forks with this outcome, if the figure is an outcome.
    pub forks: Option<u32>,
}

/// The value of a figure.
#[derive(Debug, Clone, PartialEq)]
pub enum FigureValue {
    /// A number.
    Number(Interval),
    /// A word, as in a table of features.
    Word(String),
    /// No value: the paper shows it in a picture only, or did not measure it.
    Absent,
}

/// A number with its interval; a printed figure is a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// The estimate.
    pub value: f64,
    /// Upper bound.
    pub high: f64,
}

impl Figures {
    /// Parses figures with the columns `paper,source,experiment,subject,factors,metric,stat,value,unit,kind,note`, where factors are
    /// `name=value`, separated by `;`. Measured figures may add `low` and `high`, the bounds of an interval.
    pub fn parse(text: &str) -> Result<Self, FiguresError> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers()?.clone();
        let mut figures = Vec::new();
        for record in reader.records() {
            figures.push(Figure::read(&header, &record?)?);
        }
        Ok(Self(figures))
    }

    /// Adds the figures of another file.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Lists the figures in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Figure> {
        self.0.iter()
    }
}

impl FromIterator<Figure> for Figures {
    fn from_iter<I: IntoIterator<Item = Figure>>(figures: I) -> Self {
        Self(figures.into_iter().collect())
    }
}

impl Figure {
    fn read(header: &csv::StringRecord, record: &csv::StringRecord) -> Result<Self, FiguresError> {
        let cell = |name: &str| {
            let place = header.iter().position(|column| column == name);
            place.and_then(|place| record.get(place)).unwrap_or_default().trim()
        };
        let line = record.position().map_or(0, csv::Position::line);
        let value = FigureValue::read(cell("value"), cell("low"), cell("high"));
        Ok(Self {
            source: cell("source").into(),
            experiment: cell("experiment").into(),
            subject: cell("subject").into(),
            factors: factors(cell("factors")),
            metric: cell("metric").into(),
            stat: cell("stat").into(),
            value: value.ok_or(FiguresError::Bounds { line })?,
            unit: cell("unit").into(),
            kind: cell("kind").into(),
            note: cell("note").into(),
            replicates: Replicates::default(),
            forks: None,
        })
    }

    /// Returns the reason for which it cannot be compared with any other; `None` if it can.
    #[must_use]
    pub fn objection(&self) -> Option<&str> {
        [OVERLAPPING, CUT_BY_CLOCK, MODELLED].contains(&self.kind.as_str()).then_some(self.note.as_str())
    }

    /// Returns the counted quantity, if the figure is comparable only with figures of the same quantity.
    #[must_use]
    pub fn alike(&self) -> Option<&str> {
        self.kind.strip_prefix(ALIKE)
    }

    /// Returns true if only the bounds of its interval tell how sure it is.
    #[must_use]
    pub fn has_bounds_alone(&self) -> bool {
        let is_wide = matches!(self.value, FigureValue::Number(interval) if interval.low < interval.high);
        is_wide && self.replicates.is_empty()
    }

    /// Returns the value of a column, or else of a factor.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        match name {
            "source" => Some(&self.source),
            "experiment" => Some(&self.experiment),
            "subject" => Some(&self.subject),
            "stat" => Some(&self.stat),
            "kind" => Some(&self.kind),
            "value" => self.value.word(),
            _ => self.factors.get(name).map(String::as_str),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.subject, self.metric)?;
        for (name, value) in &self.factors {
            write!(f, " {name}={value}")?;
        }
        Ok(())
    }
}

impl FigureValue {
    /// Parses a number, a duration (`hh:mm:ss`, as seconds), a word or an empty text; `None` if the bounds are invalid.
    fn read(text: &str, low: &str, high: &str) -> Option<Self> {
        let number = text.parse().ok().or_else(|| seconds(text)).filter(|number: &f64| number.is_finite());
        match (number, low.is_empty() && high.is_empty()) {
            (Some(value), true) => Some(Self::Number(Interval::point(value))),
            (Some(value), false) => {
                let (low, high) = (low.parse().ok()?, high.parse().ok()?);
                (low <= value && value <= high).then_some(Self::Number(Interval { low, value, high }))
            }
            (None, false) => None,
            (None, true) if text.is_empty() => Some(Self::Absent),
            (None, true) => Some(Self::Word(text.to_owned())),
        }
    }

    fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            Self::Number(_) | Self::Absent => None,
        }
    }
}

impl fmt::Display for FigureValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(interval) => interval.fmt(f),
            Self::Word(word) => f.write_str(word),
            Self::Absent => Ok(()),
        }
    }
}

impl Interval {
    /// Makes an exact number.
    #[must_use]
    pub const fn point(value: f64) -> Self {
        Self { low: value, value, high: value }
    }

    /// Returns true if the error of the estimate is unknown.
    #[must_use]
    pub fn is_open(self) -> bool {
        self.high > self.value.abs() * OPEN
    }

    /// Returns true if no run varied the number, or if it is no estimate.
    #[must_use]
    pub fn is_exact(self) -> bool {
        self.high - self.low <= EXACT_SHARE * self.value.abs()
    }

    /// Applies an operation that is monotonic in each operand, so that the extremes are at the corners.
    #[must_use]
    pub fn combine(self, other: Self, apply: impl Fn(f64, f64) -> f64) -> Self {
        let corners = [
            apply(self.low, other.low),
            apply(self.low, other.high),
            apply(self.high, other.low),
            apply(self.high, other.high),
        ];
        let (low, high) = corners.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), corner| {
            (low.min(*corner), high.max(*corner))
        });
        Self { low, value: apply(self.value, other.value), high }
    }

    /// Returns the absolute value.
    #[must_use]
    pub fn abs(self) -> Self {
        let (low, high) = (self.low.abs(), self.high.abs());
        let crosses = self.low <= 0.0 && self.high >= 0.0;
        Self { low: if crosses { 0.0 } else { low.min(high) }, value: self.value.abs(), high: low.max(high) }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_point = self.low >= self.high;
        let number = |value| number(value, if is_point { DIGITS_PRINTED } else { DIGITS_MEASURED });
        write!(f, "{}", number(self.value))?;
        if self.is_open() {
            return f.write_str(" (spread unknown)");
        }
        if self.low < self.high {
            write!(f, " ({} to {})", number(self.low), number(self.high))?;
        }
        Ok(())
    }
}

/// Writes a number with at most `digits` significant digits, and with all digits before the decimal point.
fn number(value: f64, digits: i32) -> String {
    let digits_before = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 + 1 };
    let decimals = (digits - digits_before).clamp(0, 6) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn seconds(text: &str) -> Option<f64> {
    let parts: Vec<f64> = text.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hours, minutes, seconds] = parts[..] else { return None };
    Some((hours * SIXTY + minutes) * SIXTY + seconds)
}

fn factors(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split(';').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}
