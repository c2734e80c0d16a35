//! A log of response times for some devices, to measure the latency of single messages.

use super::request::APNS_PATH;
use crate::error::EmulatorError;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// The selection of APNs responses to log, and the log's file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SinkLogConfig {
    /// The file. It has a line per response: the token, a space, microseconds since 1970. An existing file is emptied.
    pub path: PathBuf,
    /// The prefix of the tokens to log.
    pub token_prefix: String,
}

/// The open file.
pub(crate) struct SinkLogWriter {
    prefix: Vec<u8>,
    file: Mutex<File>,
}

impl SinkLogWriter {
    /// Creates the file.
    pub(super) fn open(config: &SinkLogConfig) -> Result<Self, EmulatorError> {
        let file = File::create(&config.path).map_err(|source| EmulatorError::file(&config.path, source))?;
        Ok(Self { prefix: config.token_prefix.clone().into_bytes(), file: Mutex::new(file) })
    }

    /// Returns the token in a path if its response is to be logged.
    pub(super) fn wanted<'a>(&self, path: &'a [u8]) -> Option<&'a [u8]> {
        path.strip_prefix(APNS_PATH).filter(|token| token.starts_with(&self.prefix))
    }

    /// Logs these tokens as answered now, and clears the list.
    pub(super) fn note(&self, tokens: &mut Vec<Vec<u8>>) {
        if tokens.is_empty() {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        // One write for all: the lines of several connections must not mix.
        let mut lines = Vec::new();
        for token in tokens.drain(..) {
            lines.extend_from_slice(&token);
            lines.extend_from_slice(format!(" {now}\n").as_bytes());
        }
        let mut file = self.file.lock();
        // The log misses lines that could not be written; the responses do not depend on it.
        let _ = file.write_all(&lines);
    }
}
