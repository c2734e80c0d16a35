//! Errors of starting an emulator or of changing its policy.

use std::path::PathBuf;

/// The reason why an emulator could not start or could not accept a policy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmulatorError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The requested address.
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
        /// The owner of the key.
        owner: String,
        /// The reason why the key cannot be used.
        reason: String,
    },
    /// The policy is invalid for this push service.
    #[error("policy: {0}")]
    Policy(String),
    /// The observer file is not one, is too small, or is in use by another process.
    #[error("observer file {path}: {reason}")]
    Observer {
        /// The file.
        path: PathBuf,
        /// The reason why the file cannot be used.
        reason: String,
    },
}

impl EmulatorError {
    pub(crate) fn file(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::File { path: path.into(), source }
    }
}
