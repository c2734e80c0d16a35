//! The manifest of a backup, its last file.

use std::fs::File;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use stentor_server::app::AppError;
use stentor_server::contract::Instant;
use stentor_server::private;

use super::{at, refused};

const MANIFEST_FILE: &str = "backup.json";
/// Version of the manifest's format.
const FORMAT: u32 = 1;

/// The content of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupManifest {
    /// The version of the manifest's format.
    pub format: u32,
    /// The version of the program that made it.
    pub version: String,
    /// The instant before the copy began; it includes everything committed until then.
    pub taken_at: Instant,
    /// Its files.
    pub files: Vec<BackupFile>,
}

/// One file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFile {
    /// Its name in the folder.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its BLAKE3 hash in hexadecimal digits.
    pub blake3: String,
}

impl BackupManifest {
    /// Returns the manifest of some files of a folder.
    pub(super) fn of(folder: &Path, taken_at: Instant, names: &[String]) -> Result<Self, AppError> {
        let files = names.iter().map(|name| BackupFile::of(folder, name)).collect::<Result<_, _>>()?;
        Ok(Self { format: FORMAT, version: env!("CARGO_PKG_VERSION").to_owned(), taken_at, files })
    }

    /// Writes it to its folder, atomically.
    pub(super) fn write(&self, folder: &Path) -> Result<(), AppError> {
        let path = folder.join(MANIFEST_FILE);
        let json = serde_json::to_vec_pretty(self).map_err(|error| refused(error.to_string()))?;
        private::write(&path, &json).map_err(|cause| at(&path, cause))
    }

    /// Reads the manifest of a folder.
    pub(super) fn read(folder: &Path) -> Result<Self, AppError> {
        let path = folder.join(MANIFEST_FILE);
        let json = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let folder = folder.display();
                return Err(refused(format!(
                    "{folder} is no backup, or one that broke off: it has no {MANIFEST_FILE}"
                )));
            }
            read => read.map_err(|cause| at(&path, cause))?,
        };
        let read: Self =
            serde_json::from_slice(&json).map_err(|error| refused(format!("{}: {error}", path.display())))?;
        match read.format {
            FORMAT => Ok(read),
            other => {
                Err(refused(format!("{}: the format {other} is not known to this version", path.display())))
            }
        }
    }

    /// Fails if a file differs from the manifest.
    pub(super) fn compare(&self, folder: &Path) -> Result<(), AppError> {
        for recorded in &self.files {
            if recorded.name.contains('/') || BackupFile::of(folder, &recorded.name)? != *recorded {
                let path = folder.join(&recorded.name);
                return Err(refused(format!("{} differs from the file that was backed up", path.display())));
            }
        }
        Ok(())
    }
}

impl BackupFile {
    fn of(folder: &Path, name: &str) -> Result<Self, AppError> {
        let path = folder.join(name);
        let mut hasher = blake3::Hasher::new();
        let bytes = File::open(&path).and_then(|mut file| io::copy(&mut file, &mut hasher));
        let bytes = bytes.map_err(|cause| at(&path, cause))?;
        Ok(Self { name: name.to_owned(), bytes, blake3: hasher.finalize().to_hex().to_string() })
    }
}
