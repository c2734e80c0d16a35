//! What is known of a credential that an emulator has made for its senders.

use serde::Serialize;
use std::path::PathBuf;

/// A credential that an emulator has made, and its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum EmulatorCredential {
    /// The service account of a project, in Google's JSON.
    ServiceAccount {
        /// The file.
        file: PathBuf,
        /// The project that the account belongs to.
        project_id: String,
    },
    /// A signing key of APNs, in PKCS #8.
    SigningKey {
        /// The file.
        file: PathBuf,
        /// The id of the key.
        key_id: String,
        /// The team that the key belongs to.
        team_id: String,
    },
}
