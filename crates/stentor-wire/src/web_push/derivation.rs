//! Key derivation of both content codings of Web Push: a secret agreed by two key pairs, a salt, and an info string (RFC 5869).

use aws_lc_rs::aead::{AES_128_GCM, LessSafeKey, NONCE_LEN, UnboundKey};
use aws_lc_rs::agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};

/// Bytes of the secret that a device shares with its key.
pub(super) const AUTH_BYTES: usize = 16;
/// Bytes of a salt. Each sealed body has its own.
pub const SALT_BYTES: usize = 16;
const KEY_BYTES: usize = 16;
const SECRET_BYTES: usize = 32;

/// The secret from which the keys of one body are derived.
pub struct SealingSecret([u8; SECRET_BYTES]);

impl SealingSecret {
    /// Derives it from the shared secret of two key pairs and the device's secret; fails if `theirs` is not a point of the curve.
    pub fn agreed(own: &PrivateKey, theirs: &[u8], auth: &[u8], info: &[&[u8]]) -> Result<Self, Unspecified> {
        let theirs = UnparsedPublicKey::new(&ECDH_P256, theirs);
        agree(own, theirs, Unspecified, |shared| derived(auth, shared, info)).map(Self)
    }

    /// Derives the key and the nonce of a body.
    pub fn keys(
        &self,
        salt: &[u8],
        key_info: &[&[u8]],
        nonce_info: &[&[u8]],
    ) -> Result<(LessSafeKey, [u8; NONCE_LEN]), Unspecified> {
        let key: [u8; KEY_BYTES] = derived(salt, &self.0, key_info)?;
        let nonce = derived(salt, &self.0, nonce_info)?;
        Ok((LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key)?), nonce))
    }
}

/// An output length, as the library requires it.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn derived<const N: usize>(salt: &[u8], input: &[u8], info: &[&[u8]]) -> Result<[u8; N], Unspecified> {
    let mut key = [0; N];
    let extracted = Salt::new(HKDF_SHA256, salt).extract(input);
    extracted.expand(info, Length(N))?.fill(&mut key)?;
    Ok(key)
}
