//! One SQLite file: its permissions, its lock, and the settings of its connections.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use stentor_core::ports::store::StoreError;

use super::settings::SqliteSettings;
use crate::sql::Done;

/// Statements kept prepared by each connection.
const PREPARED_MAX_COUNT: usize = 256;
/// An emptied write-ahead log is cut back to this part of its bound.
const WAL_KEPT_SHARE: u64 = 2;

/// The right to use a file, held as long as this value lives; the kernel takes it back when the process dies.
#[derive(Debug)]
pub(super) struct FileLock {
    _file: File,
}

impl FileLock {
    /// Takes the lock beside the file; a second taker is refused at once.
    pub(super) fn take(database: &Path) -> Result<Self, StoreError> {
        let path = beside(database, "lock");
        let file = create_private(&path).map_err(|error| unavailable(&path, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Conflict(format!(
                "{} is in use by another process: stop it, or give this one another data directory",
                database.display()
            ))),
            Err(TryLockError::Error(error)) => Err(unavailable(&path, &error)),
        }
    }
}

/// Creates the file and its directory if needed; only its owner may read it, because it holds secrets.
pub(super) fn ensure(database: &Path) -> Result<(), StoreError> {
    if let Some(folder) = database.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| unavailable(folder, &error))?;
    }
    create_private(database).map(drop).map_err(|error| unavailable(database, &error))
}

/// Moves an unreadable file aside, replacing the one moved aside before.
pub(super) fn quarantine(database: &Path) -> Result<(), StoreError> {
    let aside = beside(database, "damaged");
    std::fs::rename(database, &aside).map_err(|error| unavailable(database, &error))?;
    for companion in ["-wal", "-shm"] {
        let mut path = database.as_os_str().to_owned();
        path.push(companion);
        if let Err(error) = std::fs::remove_file(&path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(unavailable(Path::new(&path), &error));
        }
    }
    Ok(())
}

/// Returns the path of a companion file.
fn beside(database: &Path, extension: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

/// Opens the connection that writes.
pub(super) fn open_writer(path: &Path, settings: &SqliteSettings) -> Done<Connection> {
    let connection = open(path, settings, settings.writer_cache_kib)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", settings.synchronous.as_str())?;
    check_in_force(&connection, path, settings)?;
    connection.pragma_update(None, "wal_autocheckpoint", settings.wal_autocheckpoint_pages)?;
    connection.pragma_update(
        None,
        "journal_size_limit",
        crate::sql::int(settings.wal_max_bytes / WAL_KEPT_SHARE),
    )?;
    Ok(connection)
}

/// Checks that SQLite applies the settings. It silently falls back if a journal mode is not possible, on a network file system for
/// instance, and a commit would be less durable than promised.
fn check_in_force(connection: &Connection, path: &Path, settings: &SqliteSettings) -> Done<()> {
    let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    let synchronous: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    if journal == "wal" && synchronous == settings.synchronous.code() {
        return Ok(());
    }
    let why = format!(
        "{}: SQLite would run with journal_mode={journal} and synchronous={synchronous}, not with WAL and {}: \
         keep the data on a local disk",
        path.display(),
        settings.synchronous.as_str()
    );
    Err(StoreError::Unavailable(why).into())
}

/// Opens a connection that only reads.
pub(super) fn open_reader(path: &Path, settings: &SqliteSettings) -> Done<Connection> {
    let connection = open(path, settings, settings.reader_cache_kib)?;
    connection.pragma_update(None, "mmap_size", i64::from(settings.mmap_mib) << 20)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn open(path: &Path, settings: &SqliteSettings, cache_kib: u32) -> Done<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match &settings.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs.as_str())?,
        None => Connection::open_with_flags(path, flags)?,
    };
    // First: the statements below may meet another process that holds the file.
    connection.busy_timeout(std::time::Duration::from_millis(settings.busy_timeout_ms.into()))?;
    connection.set_prepared_statement_cache_capacity(PREPARED_MAX_COUNT);
    // Without it, a statement whose parameters were compared with the condition of a partial index is prepared again for each use.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "cache_size", -i64::from(cache_kib))?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "foreign_keys", false)?;
    Ok(connection)
}

fn create_private(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn unavailable(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Unavailable(format!("{}: {error}", path.display()))
}
