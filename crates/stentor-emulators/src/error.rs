//! What can go wrong when an emulator is started or told something.

use std::path::PathBuf;

/// Why an emulator could not start or could not take a policy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmulatorError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: std::net::SocketAddr,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// A file cannot be read or written.
    #[error("cannot use {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// The certificate or its key cannot be made or used.
    #[error("certificate: {0}")]
    Certificate(String),
    /// A configured public key is not a PEM key of the right kind.
    #[error("public key of {owner}: {reason}")]
    PublicKey {
        /// Whose key it is.
        owner: String,
        /// Why it cannot be used.
        reason: String,
    },
    /// The policy says something that this push service cannot answer.
    #[error("policy: {0}")]
    Policy(String),
    /// The observer file is not one, is too small, or is in use by another process.
    #[error("observer file {path}: {reason}")]
    Observer {
        /// The file.
        path: PathBuf,
        /// Why it cannot be used.
        reason: String,
    },
}

impl EmulatorError {
    pub(crate) fn file(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::File { path: path.into(), source }
    }
}
