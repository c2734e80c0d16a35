//! The place of the key that seals credentials.

use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::FormatChecks;

/// File in the data directory that holds the key, unless the configuration names another place.
pub const SEAL_KEY_FILE: &str = "seal.key";

/// Settings of the key that seals credentials at rest.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretsConfig {
    /// Keys with white space between, the first of which seals; empty for those of the file.
    pub key: SecretString,
    /// File with the same; empty for the one in the data directory.
    pub key_file: PathBuf,
    /// Folder with the secrets that all servers of an installation share; empty for those of the data directory.
    pub shared_dir: PathBuf,
}

impl SecretsConfig {
    /// Returns the keys that are given in place of a file.
    #[must_use]
    pub fn key(&self) -> Option<&SecretString> {
        (!self.key.expose_secret().trim().is_empty()).then_some(&self.key)
    }

    /// Returns the file that holds the keys when they are not given here.
    #[must_use]
    pub fn key_file(&self, data_dir: &Path) -> PathBuf {
        if self.key_file.as_os_str().is_empty() {
            data_dir.join(SEAL_KEY_FILE)
        } else {
            self.key_file.clone()
        }
    }

    /// Returns the problems found; they do not repeat the secret.
    pub(super) fn problems(&self, formats: &FormatChecks) -> Vec<String> {
        let wrong = self.key().and_then(|key| (formats.seal_keys)(key.expose_secret()).err());
        let wrong = wrong.map(|error| format!("secrets.key: {error}"));
        let both = self.key().is_some() && !self.key_file.as_os_str().is_empty();
        let both = both.then(|| "secrets.key: goes without secrets.key_file: give one of them".to_owned());
        wrong.into_iter().chain(both).collect()
    }
}
