//! What probes said, as a file beside the records of a run, and as figures that claims are judged by.

use super::{ProbeAnswer, ProbeResult, ProbeWord, STUDY};
use crate::claims::figures::{Figure, FigureValue, Figures, Interval};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The file in the directory of a run.
pub const PROBES: &str = "probes.json";
/// The shape of the file.
const SCHEMA: &str = "stentor.lab.probes/1";
/// The largest file that is read.
const FILE_MAX_BYTES: u64 = 4 << 20;

/// Probes of whether something exists at all.
const EXISTENCE: [&str; 1] = ["contract"];

/// What all probes said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probed {
    schema: String,
    /// The study whose tables they bear on.
    pub study: String,
    /// Each probe on each protocol, of our own subjects.
    pub probes: Vec<ProbeResult>,
    /// The same of the server itself, which decide no claim; empty where it was not asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server: Vec<ProbeResult>,
}

/// Why the file of probes cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProbedError {
    /// It cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is no such file.
    #[error("{path} has no results of probes: {what}")]
    Shape {
        /// The file.
        path: String,
        /// What is wrong.
        what: String,
    },
}

impl Probed {
    /// Takes what probes said.
    #[must_use]
    pub fn of(probes: Vec<ProbeResult>) -> Self {
        Self { schema: SCHEMA.into(), study: STUDY.into(), probes, server: Vec::new() }
    }

    /// Adds what the server itself said.
    #[must_use]
    pub fn with_server(self, server: Vec<ProbeResult>) -> Self {
        Self { server, ..self }
    }

    /// Lists what was said by whomever.
    pub fn all(&self) -> impl Iterator<Item = &ProbeResult> {
        self.probes.iter().chain(&self.server)
    }

    /// Returns whether every probe came to its end.
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

    /// Reads the file of a run; `None` where there is none.
    pub fn read(directory: &Path) -> Result<Option<Self>, ProbedError> {
        let path = directory.join(PROBES);
        let name = || path.display().to_string();
        let wrong = |source| ProbedError::Io { path: name(), source };
        if !path.is_file() {
            return Ok(None);
        }
        let shape = |what: String| ProbedError::Shape { path: name(), what };
        if std::fs::metadata(&path).map_err(wrong)?.len() > FILE_MAX_BYTES {
            return Err(shape("it is too large".into()));
        }
        let text = std::fs::read_to_string(&path).map_err(wrong)?;
        let probed: Self = serde_json::from_str(&text).map_err(|error| shape(error.to_string()))?;
        if probed.schema != SCHEMA {
            return Err(shape(format!("its schema is not {SCHEMA}")));
        }
        Ok(Some(probed))
    }

    /// Makes figures of what was told; what no probe can tell is none.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.probes.iter().filter_map(figure).collect()
    }
}

/// Returns what claims can be judged by. That something exists is not refuted by a face of ours that lacks it.
fn figure(told: &ProbeResult) -> Option<Figure> {
    if EXISTENCE.contains(&told.id.as_str()) && told.answer == ProbeAnswer::Word(ProbeWord::No) {
        return None;
    }
    let value = match told.answer {
        ProbeAnswer::Number(number) => FigureValue::Number(Interval::point(number)),
        ProbeAnswer::Word(word @ (ProbeWord::Yes | ProbeWord::No)) => FigureValue::Word(word.word().into()),
        ProbeAnswer::Word(_) => return None,
    };
    Some(Figure {
        source: "stentor".into(),
        experiment: "feature table".into(),
        subject: told.subject.clone(),
        factors: BTreeMap::from([("probe".to_owned(), told.id.clone())]),
        metric: told.feature.clone(),
        stat: "value".into(),
        value,
        unit: told.unit.clone(),
        kind: told.kind.word().into(),
        note: told.evidence.clone(),
    })
}
