//! Notes of when some devices' requests were answered, for whoever asks how long single messages take.

use super::request::APNS_PATH;
use crate::error::EmulatorError;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Which answers of APNs' kind are noted, and where.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SinkLogConfig {
    /// The file; a line for each answer: the token, a space, microseconds since 1970. One that is there is emptied.
    pub path: PathBuf,
    /// Tokens that begin so are noted, others are not.
    pub token_prefix: String,
}

/// The open file.
pub(crate) struct SinkLogWriter {
    prefix: Vec<u8>,
    file: Mutex<File>,
}

impl SinkLogWriter {
    /// Makes the file.
    pub(super) fn open(config: &SinkLogConfig) -> Result<Self, EmulatorError> {
        let file = File::create(&config.path).map_err(|source| EmulatorError::file(&config.path, source))?;
        Ok(Self { prefix: config.token_prefix.clone().into_bytes(), file: Mutex::new(file) })
    }

    /// Returns the token in a path, if its answer is to be noted.
    pub(super) fn wanted<'a>(&self, path: &'a [u8]) -> Option<&'a [u8]> {
        path.strip_prefix(APNS_PATH).filter(|token| token.starts_with(&self.prefix))
    }

    /// Notes that these tokens are answered now, and forgets them.
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
        // Whoever reads the file misses what could not be written; the answers themselves do not depend on it.
        let _ = file.write_all(&lines);
    }
}
