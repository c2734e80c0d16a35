//! Results of probes: a file beside the records of a run, and figures for judging claims.

use super::{ProbeAnswer, ProbeResult, ProbeWord, STUDY};
use crate::claims::figures::{Figure, FigureValue, Figures, Interval};
use crate::statistics::Replicates;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The file in the directory of a run.
pub const PROBES: &str = "probes.json";
/// The schema of the file.
const SCHEMA: &str = "stentor.lab.probes/1";
/// The maximum size of the file.
const FILE_MAX_BYTES: u64 = 4 << 20;

/// Probes of mere existence.
const EXISTENCE: [&str; 1] = ["contract"];

/// The results of all probes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probed {
    schema: String,
    /// The study whose tables they concern.
    pub study: String,
    /// Results of each probe on each protocol, for our own subjects.
    pub probes: Vec<ProbeResult>,
    /// The same for the server itself, which decide no claim; empty if it was not probed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server: Vec<ProbeResult>,
}

/// Errors of reading and writing the file of probes.
#[derive(Debug, thiserror::Error)]
pub enum ProbedError {
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The content of the file is invalid.
    #[error("{path} has no results of probes: {what}")]
    Shape {
        /// The file.
        path: String,
        /// The problem.
        what: String,
    },
}

impl Probed {
    /// Makes the file's content from the results of probes.
    #[must_use]
    pub fn of(probes: Vec<ProbeResult>) -> Self {
        Self { schema: SCHEMA.into(), study: STUDY.into(), probes, server: Vec::new() }
    }

    /// Adds the results for the server itself.
    #[must_use]
    pub fn with_server(self, server: Vec<ProbeResult>) -> Self {
        Self { server, ..self }
    }

    /// Lists the results for our subjects and for the server.
    pub fn all(&self) -> impl Iterator<Item = &ProbeResult> {
        self.probes.iter().chain(&self.server)
    }

    /// Returns true if every probe ran to its end.
    #[must_use]
    pub fn have_all_run(&self) -> bool {
        self.all().all(ProbeResult::has_run)
    }

    /// Writes the file into the directory of a run.
    pub fn write(&self, directory: &Path) -> Result<(), ProbedError> {
        let path = directory.join(PROBES);
        let wrong = |source| ProbedError::Io { path: path.display().to_string(), source };
        let text = serde_json::to_string_pretty(self).map_err(|error| wrong(error.into()))?;
        std::fs::write(&path, text + "\n").map_err(wrong)
    }

    /// Reads the file of a run; `None` if there is none.
    pub fn read(directory: &Path) -> Result<Option<Self>, ProbedError> {
        let path = directory.join(PROBES);
        let Some(text) = read_text(&path)? else { return Ok(None) };
        let shape = |what: String| ProbedError::Shape { path: path.display().to_string(), what };
        let probed: Self = serde_json::from_str(&text).map_err(|error| shape(error.to_string()))?;
        if probed.schema != SCHEMA {
            return Err(shape(format!("its schema is not {SCHEMA}")));
        }
        Ok(Some(probed))
    }

    /// Converts the results to figures. Undecided results give no figure.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.probes.iter().filter_map(figure).collect()
    }
}

/// Reads a file of limited size; `None` if there is none.
pub(super) fn read_text(path: &Path) -> Result<Option<String>, ProbedError> {
    let name = || path.display().to_string();
    let wrong = |source| ProbedError::Io { path: name(), source };
    if !path.is_file() {
        return Ok(None);
    }
    if std::fs::metadata(path).map_err(wrong)?.len() > FILE_MAX_BYTES {
        return Err(ProbedError::Shape { path: name(), what: "it is too large".into() });
    }
    std::fs::read_to_string(path).map(Some).map_err(wrong)
}

/// Returns the figure of a result, if claims can be judged by it. A missing feature of our face does not refute that the feature exists.
fn figure(result: &ProbeResult) -> Option<Figure> {
    if EXISTENCE.contains(&result.id.as_str()) && result.answer == ProbeAnswer::Word(ProbeWord::No) {
        return None;
    }
    let value = match result.answer {
        ProbeAnswer::Number(number) => FigureValue::Number(Interval::point(number)),
        ProbeAnswer::Word(word @ (ProbeWord::Yes | ProbeWord::No)) => FigureValue::Word(word.word().into()),
        ProbeAnswer::Word(_) => return None,
    };
    Some(Figure {
        source: "stentor".into(),
        experiment: "feature table".into(),
        subject: result.subject.clone(),
        factors: BTreeMap::from([("probe".to_owned(), result.id.clone())]),
        metric: result.feature.clone(),
        stat: "value".into(),
        value,
        unit: result.unit.clone(),
        kind: result.kind.word().into(),
        note: result.evidence.clone(),
        replicates: Replicates::default(),
        forks: None,
    })
}
