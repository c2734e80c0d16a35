//! A signing key that the emulator makes for its senders.

use super::ApnsKey;
use crate::credential::EmulatorCredential;
use crate::error::EmulatorError;
use crate::files;
use rcgen::KeyPair;
use std::path::PathBuf;

/// Ids of the key and of its team, in Apple's length.
const KEY_ID: &str = "EMULATEKEY";
const TEAM_ID: &str = "EMULATTEAM";

/// A signing key with its private part.
pub(super) struct NewKey {
    file: PathBuf,
    key: KeyPair,
}

impl NewKey {
    pub(super) fn make(file: PathBuf) -> Result<Self, EmulatorError> {
        let key = KeyPair::generate().map_err(|error| EmulatorError::Certificate(error.to_string()))?;
        Ok(Self { file, key })
    }

    /// Returns the part of the key that Apple knows.
    pub(super) fn known(&self) -> ApnsKey {
        let public_key_pem = Some(self.key.public_key_pem());
        ApnsKey { team_id: TEAM_ID.to_owned(), key_id: KEY_ID.to_owned(), public_key_pem }
    }

    /// Writes the key's file.
    pub(super) fn write(self) -> Result<EmulatorCredential, EmulatorError> {
        files::replace(&self.file, self.key.serialize_pem().as_bytes(), 0o600)?;
        let (key_id, team_id) = (KEY_ID.to_owned(), TEAM_ID.to_owned());
        Ok(EmulatorCredential::SigningKey { file: self.file, key_id, team_id })
    }
}
