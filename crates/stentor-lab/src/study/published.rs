//! Published figures, each with where it was read and how.

use super::{Evidence, StudyError};
use crate::statistics::Samples;

/// Columns of a line.
const COLUMNS: usize = 11;
/// Pushes of each of the paper's tests.
const PUSHES: f64 = 1e6;

/// The figures of a study.
#[derive(Debug, Clone)]
pub struct Published {
    figures: Vec<Figure>,
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// Table or section, or that it was computed.
    pub source: String,
    /// Which scenario.
    pub experiment: String,
    /// What was measured.
    pub metric: String,
    /// The figure as it was printed.
    pub value: String,
    /// `published` or `derived`.
    pub kind: String,
    /// What else is to be known.
    pub note: String,
}

impl Published {
    /// Reads the figures of the study of 2017.
    pub fn isikligil_2017() -> Result<Self, StudyError> {
        Self::parse(include_str!("../../studies/isikligil-2017/published.csv"))
    }

    /// Reads figures: one a line, below a header, without quotes.
    pub fn parse(text: &str) -> Result<Self, StudyError> {
        let lines = text.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty());
        let figures = lines.map(|(at, line)| Figure::parse(at + 1, line)).collect::<Result<_, _>>()?;
        Ok(Self { figures })
    }

    /// Returns the rate of a scenario as the paper's table prints it, in pushes per second.
    #[must_use]
    pub fn pushes_per_second(&self, scenario: &str) -> Option<f64> {
        self.in_the_table(scenario, "throughput")?.value.parse().ok()
    }

    /// Returns how long a scenario took as the paper's table prints it, in seconds.
    #[must_use]
    pub fn duration_seconds(&self, scenario: &str) -> Option<f64> {
        let parts = self.in_the_table(scenario, "duration")?.value.split(':');
        parts.map(|part| part.parse::<f64>().ok()).try_fold(0.0, |sum, part| Some(sum * 60.0 + part?))
    }

    fn in_the_table(&self, scenario: &str, metric: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| {
            figure.experiment == scenario
                && figure.metric == metric
                && figure.kind == "published"
                && figure.source.starts_with("Table")
        })
    }

    /// Lists the figures about which there is something to say.
    pub fn remarks(&self) -> impl Iterator<Item = &Figure> {
        self.figures.iter().filter(|figure| !figure.note.is_empty())
    }
}

/// The paper's table: one run of each test, of a million pushes.
impl Evidence for Published {
    fn rates(&self, test: &str) -> Option<Samples> {
        self.pushes_per_second(test).map(|rate| std::iter::once(rate).collect())
    }

    fn finished_share(&self, test: &str) -> Option<f64> {
        let pushes = self.pushes_per_second(test)? * self.duration_seconds(test)?;
        Some((pushes / PUSHES).min(1.0))
    }

    fn is_of_the_paper(&self) -> bool {
        true
    }
}

impl Figure {
    fn parse(line: usize, text: &str) -> Result<Self, StudyError> {
        let cells: Vec<&str> = text.splitn(COLUMNS, ',').collect();
        let [_, source, experiment, _, _, metric, _, value, _, kind, note] = cells[..] else {
            return Err(StudyError::Figures { line, problem: "has too few columns" });
        };
        if text.contains('"') {
            return Err(StudyError::Figures { line, problem: "holds a quote, which is not understood" });
        }
        let [source, experiment, metric, value, kind, note] =
            [source, experiment, metric, value, kind, note].map(str::to_owned);
        Ok(Self { source, experiment, metric, value, kind, note })
    }
}
