//! The keys of a subscription: the key pair of the browser, and the secret that it shares with senders.

use crate::error::EmulatorError;
use aws_lc_rs::agreement::{self, ECDH_P256, PrivateKey, UnparsedPublicKey};
use aws_lc_rs::hmac::{self, HMAC_SHA256};

/// The bytes of a public key in uncompressed form.
pub(super) const POINT_BYTES: usize = 65;
/// The bytes of the secret that a browser shares with senders.
pub(super) const AUTH_BYTES: usize = 16;

/// A key pair for the agreement with senders.
pub(super) struct SubscriptionKeys {
    private: PrivateKey,
    public: Vec<u8>,
}

impl SubscriptionKeys {
    /// Derives the key pair of a name from a seed, so that it outlives a restart.
    pub(super) fn derive(seed: u64, name: &[u8]) -> Result<Self, EmulatorError> {
        // Nearly every text of 32 bytes is a private key of P-256.
        let mut keys =
            (0..=u8::MAX).filter_map(|round| Self::of_private(&digest(seed, "p256dh", round, name)));
        keys.next().ok_or_else(|| EmulatorError::Certificate("no key pair can be derived".to_owned()))
    }

    /// Returns the pair of a private key in 32 bytes; `None` if it is not one.
    pub(super) fn of_private(private: &[u8]) -> Option<Self> {
        let private = PrivateKey::from_private_key(&ECDH_P256, private).ok()?;
        let public = private.compute_public_key().ok()?.as_ref().to_vec();
        Some(Self { private, public })
    }

    /// Returns the public key in uncompressed form.
    pub(super) fn public(&self) -> &[u8] {
        &self.public
    }

    /// Returns the secret that this key and a sender's public key give; `None` if the latter is not one.
    pub(super) fn agree(&self, sender_key: &[u8]) -> Option<Vec<u8>> {
        let sender_key = UnparsedPublicKey::new(&ECDH_P256, sender_key);
        agreement::agree(&self.private, sender_key, (), |secret| Ok(secret.to_vec())).ok()
    }
}

/// Derives the secret that the browser of a name shares with senders.
pub(super) fn derive_auth(seed: u64, name: &[u8]) -> [u8; AUTH_BYTES] {
    let digest = digest(seed, "auth", 0, name);
    std::array::from_fn(|at| digest[at])
}

fn digest(seed: u64, purpose: &str, round: u8, name: &[u8]) -> Vec<u8> {
    let key = hmac::Key::new(HMAC_SHA256, &seed.to_le_bytes());
    hmac::sign(&key, &[purpose.as_bytes(), &[0, round], name].concat()).as_ref().to_vec()
}
