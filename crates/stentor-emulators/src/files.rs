//! Files that other processes read.

use crate::error::EmulatorError;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Replaces a whole file atomically; `mode` has its permissions.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), EmulatorError> {
    let replaced = write_draft(path, bytes, mode).and_then(|draft| fs::rename(draft, path));
    replaced.map_err(|source| EmulatorError::file(path, source))
}

/// Writes a file beside the path, for a rename or a link, and returns its path.
pub(crate) fn write_draft(path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<PathBuf> {
    let draft = path.with_file_name(format!(".draft-{}", uuid::Uuid::new_v4()));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
    file.write_all(bytes)?;
    Ok(draft)
}
