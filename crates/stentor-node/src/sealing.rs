//! The key that seals credentials: its place, its check, and its rotation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rand::Rng;
use secrecy::{ExposeSecret, SecretString};
use stentor_core::ports::store::StoreError;
use stentor_server::app::{AppError, prepare_folder};
use stentor_server::config::{Config, Engine};
use stentor_server::private;
use stentor_storage::seal::{KEY_BYTES, SealKeyId, SealKeys};
use stentor_storage::sqlite::{SqliteSettings, SqliteStore, sealed_under};

use crate::config::store_address;
use crate::engines;

/// The state of a data directory in relation to the available keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealing {
    /// The source of the keys, for people.
    pub source: String,
    /// The available keys, the sealing one first; empty if there is none yet.
    pub keys: Vec<SealKeyId>,
    /// Number of credentials sealed under each key.
    pub wanted: BTreeMap<SealKeyId, u64>,
}

/// The result of a rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// The key that sealed before.
    pub from: SealKeyId,
    /// The key that seals now.
    pub to: SealKeyId,
    /// Credentials under the new key.
    pub credentials: u64,
    /// Credentials that no key opens; the former key is kept because of them.
    pub unreadable: u64,
    /// The file that holds the key.
    pub key_file: PathBuf,
}

impl Sealing {
    /// Inspects a data directory and the available keys; writes nothing.
    pub fn look(config: &Config) -> Result<Self, AppError> {
        let wanted = wanted(config)?;
        let found = find(config)?;
        let keys = found.as_ref().map(SealKeys::ids).unwrap_or_default();
        Ok(Self { source: source(config), keys, wanted })
    }

    /// Returns the reason why these keys cannot be used, with the remedy.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let missing: Vec<_> = self.wanted.iter().filter(|(id, _)| !self.keys.contains(id)).collect();
        if missing.is_empty() {
            return None;
        }
        let wants = missing.iter().map(|(id, count)| format!("{id} ({count} of them)"));
        let wants = wants.collect::<Vec<_>>().join(", ");
        let given: Vec<_> = self.keys.iter().map(ToString::to_string).collect();
        let given = match given.as_slice() {
            [] => format!("there is no key in {}", self.source),
            given => format!("{} has {}", self.source, given.join(", ")),
        };
        Some(format!(
            "the credentials are sealed under the key {wants}, but {given}. Nothing was changed. Bring the missing key back, \
             or write it behind the one that is to be used from now on, with white space between; without it the credentials \
             cannot be read and have to be put again"
        ))
    }
}

/// Returns the keys of a data directory; creates the file at first start. Fails without any change if credentials are sealed under other
/// keys.
pub(crate) fn keys(config: &Config) -> Result<SealKeys, AppError> {
    let sealing = Sealing::look(config)?;
    if let Some(problem) = sealing.problem() {
        return Err(AppError::Sealing(problem));
    }
    let key_file = config.secrets.key_file(&config.data_dir);
    match find(config)? {
        Some(keys) => {
            private::warn_if_open(&key_file);
            Ok(keys)
        }
        None => make(&key_file),
    }
}

/// Replaces the key in the key file by a new one, in the data directory of a stopped server.
///
/// Both keys stay in the file until every credential is sealed under the new one. An interrupted rotation leaves everything readable, and
/// the next start continues it.
pub fn rotate(config: &Config) -> Result<Rotation, AppError> {
    let key_file = config.secrets.key_file(&config.data_dir);
    if config.secrets.key().is_some() {
        let why = "the key comes from secrets.key: write a new one before it, with white space between, and start the server; \
                   once it has started, take the former one away";
        return Err(AppError::Sealing(why.to_owned()));
    }
    if config.store.engine == Engine::Postgres {
        let why = "the credentials are in PostgreSQL: write a new key before the one in the key file, with white space between, \
                   and start the server; once it has started, take the former one away";
        return Err(AppError::Sealing(why.to_owned()));
    }
    if !engines::store_file(&config.data_dir).exists() {
        let folder = config.data_dir.display();
        return Err(AppError::Sealing(format!(
            "there is no database in {folder}: give the server's data directory"
        )));
    }
    // Before the keys are read: a running server would continue to seal under the former key.
    let _lock = prepare_folder(&config.data_dir)?;
    let former = keys(config)?;
    let existing = read(&key_file)?.unwrap_or_default();
    let fresh = new_key();
    write(&key_file, &format!("{}\n{}\n", fresh.expose_secret(), existing.expose_secret().trim()))?;
    // Read back from the disk: a key that could not be read after a crash must not seal anything.
    let present = parse(&key_file, &read(&key_file)?.unwrap_or_default())?;
    let to = present.present();
    let opened =
        SqliteStore::open_sealed(engines::store_file(&config.data_dir), SqliteSettings::store(), present);
    // Opening the store has resealed everything. It is closed before the count, which reads the file.
    drop(opened.map_err(|error| store(&error))?);
    let wanted = wanted(config)?;
    let credentials = wanted.get(&to).copied().unwrap_or_default();
    let unreadable = wanted.values().sum::<u64>() - credentials;
    // Only then: credentials that no key has opened may be under the former one.
    if unreadable == 0 {
        write(&key_file, &format!("{}\n", fresh.expose_secret()))?;
    }
    Ok(Rotation { from: former.present(), to, credentials, unreadable, key_file })
}

fn wanted(config: &Config) -> Result<BTreeMap<SealKeyId, u64>, AppError> {
    let wanted = match config.store.engine {
        Engine::Postgres => {
            store_address(&config.store).and_then(|address| stentor_storage::postgres::sealed_under(&address))
        }
        Engine::Sqlite | Engine::Memory => sealed_under(engines::store_file(&config.data_dir)),
    };
    wanted.map_err(|error| store(&error))
}

fn find(config: &Config) -> Result<Option<SealKeys>, AppError> {
    if let Some(key) = config.secrets.key() {
        let keys = key.expose_secret().parse::<SealKeys>();
        return keys.map(Some).map_err(|error| AppError::Sealing(format!("secrets.key: {error}")));
    }
    let path = config.secrets.key_file(&config.data_dir);
    read(&path)?.map(|text| parse(&path, &text)).transpose()
}

fn source(config: &Config) -> String {
    match config.secrets.key() {
        Some(_) => "secrets.key".to_owned(),
        None => config.secrets.key_file(&config.data_dir).display().to_string(),
    }
}

fn make(path: &Path) -> Result<SealKeys, AppError> {
    let fresh = new_key();
    write(path, &format!("{}\n", fresh.expose_secret()))?;
    let keys = parse(path, &fresh)?;
    tracing::info!(key = %keys.present(), path = %path.display(), "a key was made that seals credentials: keep a copy elsewhere");
    Ok(keys)
}

fn new_key() -> SecretString {
    let mut bytes = [0_u8; KEY_BYTES];
    rand::rng().fill_bytes(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

fn read(path: &Path) -> Result<Option<SecretString>, AppError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.into())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(AppError::File { what: path.display().to_string(), cause }),
    }
}

fn parse(path: &Path, text: &SecretString) -> Result<SealKeys, AppError> {
    let keys = text.expose_secret().parse::<SealKeys>();
    keys.map_err(|error| AppError::Sealing(format!("{}: {error}; nothing was changed", path.display())))
}

fn write(path: &Path, text: &str) -> Result<(), AppError> {
    private::write(path, text.as_bytes())
        .map_err(|cause| AppError::File { what: path.display().to_string(), cause })
}

fn store(error: &StoreError) -> AppError {
    AppError::Engine { what: "the store", cause: error.to_string() }
}
