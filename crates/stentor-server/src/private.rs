//! The data directory belongs to its owner alone: 0700, and what this server keeps in it 0600, whatever the umask says.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Mode of the directory.
const FOLDER_MODE: u32 = 0o700;
/// Mode of each file in it.
const FILE_MODE: u32 = 0o600;
/// What only others than the owner may do.
const OTHERS: u32 = 0o077;
/// What everybody may do.
const EVERYBODY: u32 = 0o007;
/// Bit of a directory that many share, such as /tmp.
const SHARED: u32 = 0o1000;
/// How the names of our files begin; the databases have companions (-wal, -shm, .lock, .damaged).
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

/// Makes a directory that only its owner may enter, with the folders above it as is usual; one that is there stays as it is.
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

/// Returns options under which a new file can be read and written by its owner alone.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Writes a small file that only its owner may read: complete on disk under its name, or not there at all.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("new");
    // One that is left over may be open to others, or lead elsewhere.
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

/// Takes from others what they may do with the directory and with our files in it; says what was changed, and warns of what
/// belongs to somebody else.
pub fn tighten(folder: &Path) {
    let mut changed = Vec::new();
    // The directory may be a link to where there is room; what lies in it is not followed.
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
            "others could read what is kept: it is the owner's alone now"
        );
    }
}

/// Warns when everybody on the machine may read a secret that lies where others look after it.
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
            tracing::warn!(path = %path.display(), %error, "others may read what is kept: give it to the server's user alone");
        }
    }
}

/// Narrows the mode of a file or directory; a link stays as it is. Returns whether anything was changed.
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
