//! A service account that the emulator makes for its senders.

use super::ServiceAccount;
use crate::credential::EmulatorCredential;
use crate::error::EmulatorError;
use crate::files;
use rcgen::{KeyPair, PKCS_RSA_SHA256};
use serde_json::json;
use std::path::PathBuf;

/// The project of the account if the settings name none.
const PROJECT: &str = "emulated-project";

/// A service account with its private key.
pub(super) struct NewAccount {
    file: PathBuf,
    project_id: String,
    key: KeyPair,
}

impl NewAccount {
    /// Makes the key. The account belongs to the first of the projects.
    pub(super) fn make(file: PathBuf, projects: &[String]) -> Result<Self, EmulatorError> {
        let project_id = projects.first().map_or_else(|| PROJECT.to_owned(), Clone::clone);
        let key = KeyPair::generate_for(&PKCS_RSA_SHA256);
        let key = key.map_err(|error| EmulatorError::Certificate(error.to_string()))?;
        Ok(Self { file, project_id, key })
    }

    /// Returns the part of the account that Google knows.
    pub(super) fn known(&self) -> ServiceAccount {
        ServiceAccount { client_email: self.client_email(), public_key_pem: self.key.public_key_pem() }
    }

    /// Writes the account's file; its token endpoint is at this URL.
    pub(super) fn write(self, url: &str) -> Result<EmulatorCredential, EmulatorError> {
        let account = json!({
            "type": "service_account",
            "project_id": self.project_id,
            "private_key_id": "emulated-key",
            "private_key": self.key.serialize_pem(),
            "client_email": self.client_email(),
            "client_id": "100000000000000000000",
            "token_uri": format!("{url}/token"),
        });
        files::replace(&self.file, account.to_string().as_bytes(), 0o600)?;
        Ok(EmulatorCredential::ServiceAccount { file: self.file, project_id: self.project_id })
    }

    fn client_email(&self) -> String {
        format!("sender@{}.iam.gserviceaccount.com", self.project_id)
    }
}
