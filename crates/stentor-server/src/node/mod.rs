//! The surroundings of a running process: its data directory with the secrets of all nodes, its identity, its engines.

mod engines;
mod identity;
mod shared_secrets;

use std::net::SocketAddr;
use std::path::Path;

use crate::config::Config;
use crate::private;
pub use engines::Engines;
pub(crate) use identity::{host_name, node_number};

/// File in the data directory that holds the address if the system chose the port.
pub const LISTEN_FILE: &str = "listen.addr";
/// File in the data directory that holds the raw socket's address if the system chose its port.
pub const SOCKET_FILE: &str = "socket.addr";
/// File in the data directory that a running server holds locked.
const LOCK_FILE: &str = "stentor.lock";

/// The reason why the server cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// A file or folder cannot be used.
    #[error("{what}: {cause}")]
    File {
        /// The file or folder.
        what: String,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// The key that seals credentials is missing or wrong.
    #[error("{0}")]
    Sealing(String),
    /// A backup cannot be made, read or restored.
    #[error("{0}")]
    Backup(String),
    /// Another server works on the same data directory.
    #[error("{0} is in use by another server: stop it first, or set another data_dir")]
    InUse(String),
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {cause}; set {setting} to a free address")]
    Listen {
        /// The setting that names it.
        setting: &'static str,
        /// The configured address.
        address: SocketAddr,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// The login by OpenID Connect cannot be set up.
    #[error("persons cannot log in: {0}")]
    Login(String),
    /// The certificate or key cannot be used.
    #[error("TLS cannot be used: {0}")]
    Tls(String),
    /// A part of the pipeline failed while the server ran; the server must be restarted.
    #[error("the {part} failed ({cause}): restart the server, and it continues where it stopped")]
    Part {
        /// The part of the server that ended.
        part: String,
        /// The cause, in a sentence.
        cause: String,
    },
    /// Store or queue cannot be used.
    #[error("{what} cannot be opened: {cause}")]
    Engine {
        /// The store or the queue.
        what: &'static str,
        /// The cause, in a sentence.
        cause: String,
    },
}

/// Creates the data directory and locks it, so that no second server works on it.
pub(crate) fn prepare(config: &Config) -> Result<std::fs::File, AppError> {
    let lock = prepare_folder(&config.data_dir)?;
    // Under the lock: the secrets of a running server must not be changed.
    shared_secrets::adopt(config)?;
    Ok(lock)
}

/// Creates the data directory with access for its owner only, and locks it.
pub fn prepare_folder(data_dir: &Path) -> Result<std::fs::File, AppError> {
    let what = data_dir.display().to_string();
    let wrap = |cause| AppError::File { what: what.clone(), cause };
    private::make_folder(data_dir).map_err(wrap)?;
    let mut options = private::options();
    let lock =
        options.create(true).truncate(false).write(true).open(data_dir.join(LOCK_FILE)).map_err(wrap)?;
    match lock.try_lock() {
        Ok(()) => {
            // An address of an earlier start would mislead scripts.
            for file in [LISTEN_FILE, SOCKET_FILE] {
                let _usually_there_is_none = std::fs::remove_file(data_dir.join(file));
            }
            private::tighten(data_dir);
            Ok(lock)
        }
        Err(std::fs::TryLockError::WouldBlock) => Err(AppError::InUse(what)),
        Err(std::fs::TryLockError::Error(cause)) => Err(wrap(cause)),
    }
}
