//! Access to the data directory for its owner only: 0700, and 0600 for this server's files in it, under any umask.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Mode of the directory.
const FOLDER_MODE: u32 = 0o700;
/// Mode of each file in it.
const FILE_MODE: u32 = 0o600;
/// Permissions of the group and of others.
const OTHERS: u32 = 0o077;
/// Permissions of others.
const EVERYBODY: u32 = 0o007;
/// Sticky bit of a shared directory, such as /tmp.
const SHARED: u32 = 0o1000;
/// Prefixes of our file names; the databases have companions (-wal, -shm, .lock, .damaged).
const OURS: &[&str] = &[
    "stentor.db",
    "queue.db",
    "stentor.lock",
    "quotas",
    "root.",
    "key.",
    "seal.",
    "service.",
    "listen.",
    "socket.",
    "node.",
];

/// Creates a directory that only its owner may enter; directories above it get the default mode. An existing directory is left unchanged.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent().filter(|above| !above.as_os_str().is_empty()) {
        std::fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(FOLDER_MODE).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        made => made,
    }
}

/// Returns options that create a file for its owner only.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Writes a small file for its owner only, atomically.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("new");
    // A leftover draft may be open to others, or a link to another place.
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = options().write(true).create_new(true).open(&draft)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&draft, path)?;
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => File::open(folder)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

/// Removes the permissions of group and others from the directory and from our files in it. Logs the changes, and warns of files of another
/// owner.
pub fn tighten(folder: &Path) {
    let mut changed = Vec::new();
    // The directory itself may be a link to another disk; links inside it are not followed.
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    note(narrow(&folder, SHARED), &folder, &mut changed);
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if OURS.iter().any(|start| name.to_string_lossy().starts_with(start)) {
            note(narrow(&entry.path(), 0), &entry.path(), &mut changed);
        }
    }
    if !changed.is_empty() {
        tracing::warn!(
            files = changed.join(", "),
            "other users could read these files; only the owner can now"
        );
    }
}

/// Warns if every user of the machine may access a secret at a configured path; the server does not change its mode.
pub fn warn_if_open(path: &Path) {
    if std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & EVERYBODY != 0) {
        tracing::warn!(path = %path.display(), "everybody may read this secret: give it to the server's user alone");
    }
}

fn note(narrowed: io::Result<bool>, path: &Path, changed: &mut Vec<String>) {
    match narrowed {
        Ok(false) => {}
        Ok(true) => changed.push(path.display().to_string()),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "other users may read this file: give it to the server's user alone");
        }
    }
}

/// Narrows the mode of a file or directory; a link is left unchanged. Returns true if anything was changed.
fn narrow(path: &Path, refused: u32) -> io::Result<bool> {
    let found = std::fs::symlink_metadata(path)?;
    let mode = found.permissions().mode();
    if found.is_symlink() || mode & OTHERS == 0 {
        return Ok(false);
    }
    if !is_own(&found) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    if mode & refused != 0 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is a directory that many share"));
    }
    std::fs::set_permissions(path, Permissions::from_mode(mode & 0o7777 & !OTHERS))?;
    Ok(true)
}

fn is_own(found: &Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests;
