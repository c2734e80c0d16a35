//! Conclusions of a study as predicates, judged by the paper's own figures and by ours.

use serde::{Deserialize, Serialize};

use crate::statistics::{Ratio, Samples, ratio};

/// Half of the width of the band in which two rates count as the same, as a share: single runs repeat no better.
const TIE_SHARE: f64 = 0.05;
/// Confidence of the intervals that decide.
const CONFIDENCE: f64 = 0.95;

/// A conclusion.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Claim {
    /// A short name.
    pub id: String,
    /// The conclusion.
    pub text: String,
    /// Where the paper says so; empty for a conclusion of ours.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The question beyond the paper that it answers; empty for the paper's own conclusions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// What must be the case for it to hold.
    #[serde(flatten)]
    pub kind: Kind,
    /// What is to be known of the comparison.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// What must be the case for a claim to hold.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Kind {
    /// In each pair the first test has the higher rate.
    Order {
        /// Tests that are compared.
        pairs: Vec<[String; 2]>,
    },
    /// In each pair the first test is less than so many times as fast as the second.
    Below {
        /// Tests that are compared.
        pairs: Vec<[String; 2]>,
        /// The factor.
        factor: f64,
    },
    /// No test is faster than this, in pushes per second.
    Ceiling {
        /// Tests that are looked at.
        tests: Vec<String>,
        /// The rate.
        rate: f64,
    },
    /// A test has this rate, in pushes per second. Only the paper's figures can say: elsewhere it would be another rate.
    Stated {
        /// The test.
        test: String,
        /// The rate.
        rate: f64,
    },
    /// A test does not come to its end.
    Unfinished {
        /// The test.
        test: String,
    },
}

/// What figures say of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is as claimed.
    Holds,
    /// Some of it is the other way round.
    DoesNotHold,
    /// Some of it is too close to call, none is the other way round.
    Undecided,
    /// A figure is missing, or cannot say.
    NotTestable,
}

impl Verdict {
    /// Returns the word for people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::Undecided => "undecided",
            Self::NotTestable => "not testable",
        }
    }

    /// Joins the verdicts on the parts of a claim.
    fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        let parts: Vec<Self> = parts.into_iter().collect();
        let worst = [Self::NotTestable, Self::DoesNotHold, Self::Undecided];
        worst.into_iter().find(|verdict| parts.contains(verdict)).unwrap_or(Self::Holds)
    }
}

/// Figures that claims are judged by.
pub trait Evidence {
    /// The rates of a test's runs, in pushes per second.
    fn rates(&self, test: &str) -> Option<Samples>;
    /// The share of a test's pushes that came to an end, from 0 to 1.
    fn finished_share(&self, test: &str) -> Option<f64>;
    /// Whether rates themselves can be compared with the paper's, and not only with each other.
    fn is_of_the_paper(&self) -> bool;
}

/// A verdict and the figures behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// What they say.
    pub verdict: Verdict,
    /// The figures.
    pub figures: String,
}

impl Found {
    fn nothing() -> Self {
        Self { verdict: Verdict::NotTestable, figures: "–".to_owned() }
    }
}

impl Claim {
    /// Lists the tests that it speaks of.
    #[must_use]
    pub fn tests(&self) -> Vec<&str> {
        match &self.kind {
            Kind::Order { pairs } | Kind::Below { pairs, .. } => {
                pairs.iter().flatten().map(String::as_str).collect()
            }
            Kind::Ceiling { tests, .. } => tests.iter().map(String::as_str).collect(),
            Kind::Stated { test, .. } | Kind::Unfinished { test } => vec![test],
        }
    }

    /// Judges it.
    #[must_use]
    pub fn judge(&self, evidence: &impl Evidence) -> Found {
        match &self.kind {
            Kind::Order { pairs } => order(pairs, evidence),
            Kind::Below { pairs, factor } => below(pairs, *factor, evidence),
            Kind::Ceiling { tests, rate } => ceiling(tests, *rate, evidence),
            Kind::Stated { test, rate } => stated(test, *rate, evidence),
            Kind::Unfinished { test } => unfinished(test, evidence),
        }
    }
}

fn order(pairs: &[[String; 2]], evidence: &impl Evidence) -> Found {
    compare(pairs, evidence, |usual, careful| {
        if usual.low.unwrap_or(usual.ratio) >= 1.0 + TIE_SHARE {
            Verdict::Holds
        } else if careful.high.unwrap_or(careful.ratio) <= 1.0 / (1.0 + TIE_SHARE) {
            Verdict::DoesNotHold
        } else {
            Verdict::Undecided
        }
    })
}

fn below(pairs: &[[String; 2]], factor: f64, evidence: &impl Evidence) -> Found {
    compare(pairs, evidence, |usual, careful| {
        if usual.high.unwrap_or(usual.ratio) < factor {
            Verdict::Holds
        } else if careful.low.unwrap_or(careful.ratio) >= factor {
            Verdict::DoesNotHold
        } else {
            Verdict::Undecided
        }
    })
}

/// Judges each pair by its ratio, with the usual confidence and with one raised for the number of pairs: to hold, every
/// pair must hold; to fail, one of several is enough, and chance has as many occasions.
fn compare(
    pairs: &[[String; 2]],
    evidence: &impl Evidence,
    judge: impl Fn(Ratio, Ratio) -> Verdict,
) -> Found {
    let strict = 1.0 - (1.0 - CONFIDENCE) / pairs.len().max(1) as f64;
    let told = pairs.iter().map(|[first, second]| {
        let (above, below) = (evidence.rates(first)?, evidence.rates(second)?);
        let (usual, careful) = (ratio(&above, &below, CONFIDENCE)?, ratio(&above, &below, strict)?);
        let figures = format!("{first}/{second} {}", interval(usual.ratio, usual.low, usual.high, 2));
        Some((judge(usual, careful), figures))
    });
    let Some(told) = told.collect::<Option<Vec<_>>>() else { return Found::nothing() };
    let (verdicts, figures): (Vec<_>, Vec<_>) = told.into_iter().unzip();
    Found { verdict: Verdict::all(verdicts), figures: figures.join("; ") }
}

fn ceiling(tests: &[String], rate: f64, evidence: &impl Evidence) -> Found {
    let estimates = tests.iter().map(|test| Some((test, evidence.rates(test)?.estimate(CONFIDENCE)?)));
    let Some(estimates) = estimates.collect::<Option<Vec<_>>>() else { return Found::nothing() };
    let best = estimates.into_iter().max_by(|one, other| one.1.mean.total_cmp(&other.1.mean));
    let Some((test, best)) = best else { return Found::nothing() };
    let verdict = if best.low.unwrap_or(best.mean) > rate * (1.0 + TIE_SHARE) {
        Verdict::DoesNotHold
    } else if best.high.unwrap_or(best.mean) <= rate * (1.0 + TIE_SHARE) {
        Verdict::Holds
    } else {
        Verdict::Undecided
    };
    Found { verdict, figures: format!("best: {test}, {}/s", interval(best.mean, best.low, best.high, 0)) }
}

fn stated(test: &str, rate: f64, evidence: &impl Evidence) -> Found {
    let estimate = evidence.rates(test).and_then(|rates| rates.estimate(CONFIDENCE));
    let Some(estimate) = estimate.filter(|_| evidence.is_of_the_paper()) else { return Found::nothing() };
    let is_same = (estimate.mean / rate).max(rate / estimate.mean) <= 1.0 + TIE_SHARE;
    let verdict = if is_same { Verdict::Holds } else { Verdict::DoesNotHold };
    Found { verdict, figures: format!("{test}: {:.0}/s", estimate.mean) }
}

fn unfinished(test: &str, evidence: &impl Evidence) -> Found {
    let Some(share) = evidence.finished_share(test) else { return Found::nothing() };
    let verdict = if share < 1.0 - TIE_SHARE { Verdict::Holds } else { Verdict::DoesNotHold };
    Found { verdict, figures: format!("{test}: {:.0} % of the pushes ended", 100.0 * share) }
}

/// Writes a figure with its interval, if it has one.
#[must_use]
pub fn interval(figure: f64, low: Option<f64>, high: Option<f64>, digits: usize) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("{figure:.digits$} [{low:.digits$}, {high:.digits$}]"),
        _ => format!("{figure:.digits$}"),
    }
}
