//! Backups of a data directory: a folder with a copy of the database, the pepper, and a manifest that is written last.
//!
//! The key that seals credentials is not included, because with both a thief has the credentials. The root key is created again if it is
//! missing, and the queue is rebuilt from the store.

mod manifest;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use stentor_core::ports::clock::Clock;
use stentor_server::app::{AppError, prepare_folder};
use stentor_server::clock::SystemClock;
use stentor_server::config::{Config, Engine};
use stentor_server::contract::Instant;
use stentor_server::keys::PEPPER_FILE;
use stentor_server::private;
use stentor_storage::sqlite::{Depth, copy, inspect};

use crate::config::store_address;
use crate::engines::{queue_file, store_file};
pub use manifest::{BackupFile, BackupManifest};

/// Suffixes of the database's companion files; SQLite would apply them to another database of the same name.
const COMPANIONS: &[&str] = &["-wal", "-shm"];

/// Copies the database as of one instant into a new folder, even while a server uses it. Returns the manifest. A folder is a backup only
/// with its manifest, so that an interrupted backup is none.
pub fn back_up(config: &Config, folder: &Path) -> Result<BackupManifest, AppError> {
    let database = database(config, folder)?;
    begin(folder)?;
    let taken_at = Instant(SystemClock.now());
    copy(&database, folder.join(file_name(&database))).map_err(|error| refused(error.to_string()))?;
    let mut names = vec![file_name(&database)];
    if copy_private(&config.data_dir.join(PEPPER_FILE), &folder.join(PEPPER_FILE))? {
        names.push(PEPPER_FILE.to_owned());
    }
    let manifest = BackupManifest::of(folder, taken_at, &names)?;
    manifest.write(folder)?;
    Ok(manifest)
}

/// Compares a backup with its manifest and checks its database. Returns the manifest. Fails if anything is missing, different or damaged.
pub fn check_backup(folder: &Path, depth: Depth) -> Result<BackupManifest, AppError> {
    let manifest = BackupManifest::read(folder)?;
    manifest.compare(folder)?;
    let found = inspect(store_file(folder), depth).map_err(|error| refused(error.to_string()))?;
    match found.problems.first() {
        None => Ok(manifest),
        Some(problem) => Err(refused(format!("the database in {} is damaged: {problem}", folder.display()))),
    }
}

/// Checks a backup and restores it into a data directory without a database. The database is renamed into place last, so that an
/// interrupted restore leaves nothing on which a server would start.
pub fn restore(config: &Config, folder: &Path) -> Result<BackupManifest, AppError> {
    if config.store.engine == Engine::Postgres {
        return Err(refused(by_its_own_programs(config, folder, BackupWay::Back)));
    }
    let manifest = check_backup(folder, Depth::Quick)?;
    let _lock = prepare_folder(&config.data_dir)?;
    let database = store_file(&config.data_dir);
    require_absent(&database)?;
    // Before the database: with the database in place a server would start and create another pepper.
    restore_pepper(folder, &config.data_dir)?;
    let draft = database.with_extension("restoring");
    remove(&draft)?;
    copy_private(&store_file(folder), &draft)?;
    // It holds chunk ids of another database; it is rebuilt from the store.
    remove(&queue_file(&config.data_dir))?;
    std::fs::rename(&draft, &database).map_err(|cause| at(&database, cause))?;
    // A rename is durable only after its folder is synced.
    sync_folder(&config.data_dir)?;
    Ok(manifest)
}

/// The direction of a backup.
#[derive(Clone, Copy)]
enum BackupWay {
    Out,
    Back,
}

/// Returns the commands to run for PostgreSQL; its own programs can copy it as of one instant.
fn by_its_own_programs(config: &Config, folder: &Path, way: BackupWay) -> String {
    let options = store_address(&config.store).map(|address| address.client_options()).unwrap_or_default();
    let (folder, data_dir) = (folder.display(), config.data_dir.display());
    match way {
        BackupWay::Out => format!(
            "the store is in PostgreSQL: copy it with PostgreSQL's own programs, also while a server runs. Run:
  install -d -m 700 {folder}
  pg_dump {options} --format=custom --no-owner --no-unlogged-table-data --file={folder}/stentor.dump
  cp -p {data_dir}/{PEPPER_FILE} {folder}/"
        ),
        BackupWay::Back => format!(
            "the store is in PostgreSQL: restore it with PostgreSQL's own programs into an empty database that no server uses. Run:
  pg_restore {options} --exit-on-error --single-transaction --no-owner {folder}/stentor.dump
  cp -p {folder}/{PEPPER_FILE} {data_dir}/"
        ),
    }
}

fn database(config: &Config, folder: &Path) -> Result<PathBuf, AppError> {
    let database = store_file(&config.data_dir);
    match config.store.engine {
        Engine::Sqlite if database.exists() => Ok(database),
        Engine::Sqlite => {
            let folder = config.data_dir.display();
            Err(refused(format!("there is no database in {folder}: give the server's data directory")))
        }
        Engine::Postgres => Err(refused(by_its_own_programs(config, folder, BackupWay::Out))),
        Engine::Memory => Err(refused("a store in memory has no backup".to_owned())),
    }
}

/// Creates the folder of a backup, or accepts an empty one.
fn begin(folder: &Path) -> Result<(), AppError> {
    private::make_folder(folder).map_err(|cause| at(folder, cause))?;
    let mut entries = std::fs::read_dir(folder).map_err(|cause| at(folder, cause))?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(refused(format!("{} holds something: give a folder that is new", folder.display()))),
    }
}

fn require_absent(database: &Path) -> Result<(), AppError> {
    let names = COMPANIONS.iter().map(|end| {
        let mut name = database.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    });
    match std::iter::once(database.to_owned()).chain(names).find(|path| path.exists()) {
        None => Ok(()),
        Some(path) => {
            Err(refused(format!("{} exists already: move it out of the way first", path.display())))
        }
    }
}

/// Restores the pepper. A different existing pepper is not overwritten, because keys depend on it.
fn restore_pepper(folder: &Path, data_dir: &Path) -> Result<(), AppError> {
    let (saved, present) = (folder.join(PEPPER_FILE), data_dir.join(PEPPER_FILE));
    match (read(&saved)?, read(&present)?) {
        (None, _) => Ok(()),
        (Some(saved), Some(present)) if saved == present => Ok(()),
        (Some(_), Some(_)) => {
            let path = present.display();
            Err(refused(format!("{path} is not that of the backup: move it out of the way first")))
        }
        (Some(saved), None) => private::write(&present, &saved).map_err(|cause| at(&present, cause)),
    }
}

/// Copies a file with access for its owner only, and syncs it. Returns false if there is no such file.
fn copy_private(source: &Path, target: &Path) -> Result<bool, AppError> {
    let mut from = match File::open(source) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened.map_err(|cause| at(source, cause))?,
    };
    let options = private::options().write(true).create_new(true).open(target);
    let copied = options.and_then(|mut to| {
        io::copy(&mut from, &mut to)?;
        // On disk before the manifest lists it.
        to.sync_all()
    });
    copied.map_err(|cause| at(target, cause)).map(|()| true)
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, AppError> {
    match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(|cause| at(path, cause)),
    }
}

fn remove(path: &Path) -> Result<(), AppError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(path, error)),
        _ => Ok(()),
    }
}

fn sync_folder(folder: &Path) -> Result<(), AppError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|cause| at(folder, cause))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn at(path: &Path, cause: io::Error) -> AppError {
    AppError::File { what: path.display().to_string(), cause }
}

fn refused(why: String) -> AppError {
    AppError::Backup(why)
}
