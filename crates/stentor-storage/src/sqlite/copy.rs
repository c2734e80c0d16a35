//! A copy of a database as of one instant, also while a server writes to it.

use std::fs::File;
use std::path::Path;

use stentor_core::ports::store::StoreError;

use super::{file, inspection};
use crate::sql::{Done, SqlError};

/// Writes the state of a store's file as of one instant to a new file, which only its owner may read, and syncs it.
///
/// The copy is a snapshot of committed data (sqlite.org/lang_vacuum.html, VACUUM INTO). It blocks no other process, but the write-ahead log
/// of a running server cannot be truncated while the copy reads. Fails with Unavailable if a file cannot be read or written, and with
/// Conflict if the new file is not empty.
pub fn copy(source: impl AsRef<Path>, target: impl AsRef<Path>) -> Result<(), StoreError> {
    let (source, target) = (source.as_ref(), target.as_ref());
    if std::fs::metadata(target).is_ok_and(|found| found.len() > 0) {
        return Err(StoreError::Conflict(format!("{} is there already", target.display())));
    }
    // Made first and empty, because SQLite would make it with the mode of any other file.
    file::ensure(target)?;
    write(source, target)?;
    let unsynced = |error| StoreError::Unavailable(format!("{}: {error}", target.display()));
    // SQLite leaves it to the system when the copy reaches the disk.
    File::open(target).and_then(|copy| copy.sync_all()).map_err(unsynced)
}

fn write(source: &Path, target: &Path) -> Done<()> {
    let name = target.to_str().ok_or_else(|| {
        SqlError::from(StoreError::Unavailable(format!("{} is not UTF-8", target.display())))
    })?;
    inspection::open(source)?.execute("VACUUM INTO ?1", [name])?;
    Ok(())
}
