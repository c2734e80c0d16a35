//! Published figures, each with where it was read and how.

use super::StudyError;

/// Columns of a line.
const COLUMNS: usize = 11;

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

    /// Gives the rate of a scenario as the paper's table prints it, in pushes per second.
    #[must_use]
    pub fn pushes_per_second(&self, scenario: &str) -> Option<f64> {
        let is_rate = |figure: &&Figure| {
            figure.experiment == scenario
                && figure.metric == "throughput"
                && figure.kind == "published"
                && figure.source.starts_with("Table")
        };
        self.figures.iter().find(is_rate).and_then(|figure| figure.value.parse().ok())
    }

    /// Lists the figures about which there is something to say.
    pub fn remarks(&self) -> impl Iterator<Item = &Figure> {
        self.figures.iter().filter(|figure| !figure.note.is_empty())
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
