//! API keys: their creation, hashing and comparison, and the two files that hold this installation's secrets.

mod access_token;
mod account_key;
mod login_attempt;
mod service_key;
mod session_token;
mod signed;

use std::fmt;
use std::io;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::Rng;
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

pub use access_token::{TOKEN_LIFE, TokenGrant, looks_like_token};
pub use account_key::{AccountKey, is_signed, key_id};
pub use login_attempt::LoginAttempt;
pub(crate) use service_key::SERVICE_KEY_FILE;
pub use service_key::ServiceKey;
pub use session_token::{PersonGrant, SessionGrant, SessionHolder};
pub use signed::{SignatureError, SignedDocument};

const PREFIX: &str = "sk_";
const SECRET_BYTES: usize = 32;
/// Letters behind the prefix: 32 bytes in base64url.
const SECRET_LETTERS: usize = 43;
/// File in the data directory that holds the pepper.
pub const PEPPER_FILE: &str = "key.pepper";
/// File in the data directory that holds the operator's key.
pub const ROOT_KEY_FILE: &str = "root.key";

/// Hash of a key's secret, as stored.
pub type KeyHash = [u8; 32];

/// A new key's secret: 256 random bits behind `sk_`.
#[must_use]
pub fn new_secret() -> SecretString {
    let mut bytes = [0_u8; SECRET_BYTES];
    rand::rng().fill_bytes(&mut bytes);
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)).into()
}

/// Returns true if the text has the form of a key, so that garbage costs no look-up.
#[must_use]
pub fn looks_like_key(text: &str) -> bool {
    text.strip_prefix(PREFIX).is_some_and(|rest| {
        rest.len() == SECRET_LETTERS
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    })
}

/// Compares in constant time.
#[must_use]
pub fn same_hash(a: &KeyHash, b: &KeyHash) -> bool {
    a.ct_eq(b).into()
}

/// The installation's own secret for hashing keys: a stolen database alone opens nothing.
pub struct Pepper([u8; 32]);

impl Pepper {
    /// Reads the pepper of a data directory, or makes it at first start (mode 0600).
    pub fn of(data_dir: &Path) -> io::Result<Self> {
        let path = data_dir.join(PEPPER_FILE);
        let mut fresh = [0_u8; 32];
        rand::rng().fill_bytes(&mut fresh);
        let stored = read_or_create(&path, || URL_SAFE_NO_PAD.encode(fresh))?;
        let bytes = URL_SAFE_NO_PAD.decode(stored.expose_secret()).ok();
        let bytes = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        bytes.map(Self).ok_or_else(|| damaged(&path, "32 bytes in base64url"))
    }

    /// Hashes a secret.
    #[must_use]
    pub fn hash(&self, secret: &str) -> KeyHash {
        *blake3::keyed_hash(&self.0, secret.as_bytes()).as_bytes()
    }
}

impl fmt::Debug for Pepper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pepper([redacted])")
    }
}

/// Reads the operator's key of a data directory, or makes it at first start (mode 0600, one line).
pub fn root_key(data_dir: &Path) -> io::Result<SecretString> {
    let path = data_dir.join(ROOT_KEY_FILE);
    let stored = read_or_create(&path, || new_secret().expose_secret().to_owned())?;
    if looks_like_key(stored.expose_secret()) {
        return Ok(stored);
    }
    Err(damaged(&path, "one line with a key that begins with sk_"))
}

fn damaged(path: &Path, expected: &str) -> io::Error {
    let problem = format!("{} must hold {expected}; remove it to get a new one", path.display());
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// Reads a one-line secret, or writes a new one with access for the owner only, atomically.
fn read_or_create(path: &Path, make: impl FnOnce() -> String) -> io::Result<SecretString> {
    match std::fs::read_to_string(path) {
        Ok(text) => return Ok(text.trim().to_owned().into()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) => {}
    }
    let secret = make();
    crate::private::write(path, format!("{secret}\n").as_bytes())?;
    Ok(secret.into())
}

#[cfg(test)]
mod tests;
