//! Features of GCM and FCM as the server was seen to have them: the output of `stentor lab features --json`, beside the records of a run.

use std::path::Path;

use serde::Deserialize;

use super::file::{ProbedError, read_text};

/// The file in the directory of a run.
pub const FEATURES: &str = "features.json";

/// A feature that was tried at the front of a push service.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TriedFeature {
    /// Its name.
    pub feature: String,
    /// `GCM` or `FCM`.
    pub service: String,
    /// `YES` or `NO`.
    pub answer: String,
    /// The observation.
    pub seen: String,
}

#[derive(Deserialize)]
struct TriedFile {
    features: Vec<TriedFeature>,
}

/// Reads the file of a run; empty if there is none.
pub fn read(directory: &Path) -> Result<Vec<TriedFeature>, ProbedError> {
    let path = directory.join(FEATURES);
    let Some(text) = read_text(&path)? else { return Ok(Vec::new()) };
    let file: Result<TriedFile, _> = serde_json::from_str(&text);
    let shape = |what: String| ProbedError::Shape { path: path.display().to_string(), what };
    file.map(|file| file.features).map_err(|error| shape(error.to_string()))
}
