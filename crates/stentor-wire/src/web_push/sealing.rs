//! Encryption for a device (RFC 8291): only the holder of the device's private key can read the message; the server cannot.

use aws_lc_rs::aead::{Aad, Nonce};
use aws_lc_rs::agreement::{ECDH_P256, PrivateKey};
use aws_lc_rs::error::Unspecified;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::derivation::{AUTH_BYTES, SALT_BYTES, SealingSecret};
use super::vapid_key::VapidKey;

/// The record size that browsers accept (RFC 8291, 4); a larger text requires a larger one.
const RECORD_MIN_BYTES: usize = 4_096;
/// Salt, record size, length of the key id, and the key.
pub(super) const HEADER_BYTES: usize = 16 + 4 + 1 + 65;
pub(super) const TAG_BYTES: usize = 16;
/// Bytes by which a sealed body is longer than its text.
pub const SEALED_OVERHEAD_BYTES: usize = HEADER_BYTES + 1 + TAG_BYTES;
/// Delimiter after the text of the last record (RFC 8188, 2).
pub(super) const LAST_RECORD: u8 = 2;
/// Info strings for the derivation of the secret, the key and the nonce (RFC 8291, 3.4; RFC 8188, 2.2).
pub(super) const SECRET_INFO: &[u8] = b"WebPush: info\0";
pub(super) const KEY_INFO: &[u8] = b"Content-Encoding: aes128gcm\0";
pub(super) const NONCE_INFO: &[u8] = b"Content-Encoding: nonce\0";

/// The reason for which a text cannot be sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealingError {
    /// The text does not fit into one record.
    #[error("the text is too large for one record")]
    TooLarge,
    /// The device's key is not a point of the curve, or the machine lacks randomness.
    #[error("the key of the device cannot be used")]
    WrongKey,
}

impl From<Unspecified> for SealingError {
    fn from(_: Unspecified) -> Self {
        Self::WrongKey
    }
}

/// The keys that a device registers for sealed messages: its public key and its secret.
#[derive(Clone, PartialEq, Eq)]
pub struct PushKeys {
    key: VapidKey,
    auth: [u8; AUTH_BYTES],
}

impl std::fmt::Debug for PushKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PushKeys([redacted])")
    }
}

impl PushKeys {
    /// Parses `p256dh` and `auth` of a subscription, in base64url; `None` if they are malformed.
    #[must_use]
    pub fn read(p256dh: &str, auth: &str) -> Option<Self> {
        let auth = URL_SAFE_NO_PAD.decode(auth.trim_end_matches('=')).ok()?;
        Some(Self { key: VapidKey::read(p256dh)?, auth: auth.try_into().ok()? })
    }

    /// Returns `p256dh` and `auth`, in base64url without padding.
    #[must_use]
    pub fn texts(&self) -> (String, String) {
        (self.key.text(), URL_SAFE_NO_PAD.encode(self.auth))
    }
}

/// Seals a text for a device; returns a body of the encoding `aes128gcm`, with a single record for a text of any length.
pub fn seal(text: &[u8], keys: &PushKeys) -> Result<Vec<u8>, SealingError> {
    let mut salt = [0; SALT_BYTES];
    aws_lc_rs::rand::fill(&mut salt)?;
    seal_with(text, keys, &PrivateKey::generate(&ECDH_P256)?, salt)
}

/// Seals with a given key pair and salt, which must never be used again.
fn seal_with(
    text: &[u8],
    keys: &PushKeys,
    own: &PrivateKey,
    salt: [u8; SALT_BYTES],
) -> Result<Vec<u8>, SealingError> {
    let record = RECORD_MIN_BYTES.max(text.len() + 1 + TAG_BYTES);
    let record = u32::try_from(record).map_err(|_| SealingError::TooLarge)?;
    let (theirs, own_public) = (keys.key.as_bytes(), own.compute_public_key()?);
    let info = [SECRET_INFO, &theirs[..], own_public.as_ref()];
    let secret = SealingSecret::agreed(own, theirs, &keys.auth, &info)?;
    let (key, nonce) = secret.keys(&salt, &[KEY_INFO], &[NONCE_INFO])?;
    let mut sealed = [text, &[LAST_RECORD]].concat();
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut sealed)?;
    let mut body = Vec::with_capacity(HEADER_BYTES + sealed.len());
    body.extend_from_slice(&salt);
    body.extend_from_slice(&record.to_be_bytes());
    body.push(own_public.as_ref().len() as u8);
    body.extend_from_slice(own_public.as_ref());
    body.extend_from_slice(&sealed);
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 8291, 5 and appendix A.
    const DEVICE: &str =
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
    const AUTH: &str = "BTBZMqHH6r4Tts7J_aSIgg";
    const OWN: &str = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw";
    const SALT: &str = "DGv6ra1nlYgDCS1FRnbzlw";
    const TEXT: &[u8] = b"When I grow up, I want to be a watermelon";
    const BODY: &str = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";

    #[test]
    fn the_example_of_the_standard_is_sealed_byte_for_byte() {
        let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).expect("base64url");
        let keys = PushKeys::read(DEVICE, AUTH).expect("keys");
        let own = PrivateKey::from_private_key(&ECDH_P256, &bytes(OWN)).expect("a key");
        let salt = bytes(SALT).try_into().expect("16 bytes");
        let body = seal_with(TEXT, &keys, &own, salt).expect("sealed");
        assert_eq!(URL_SAFE_NO_PAD.encode(body), BODY);
    }

    #[test]
    fn five_bytes_become_108_and_no_two_are_alike() {
        let keys = PushKeys::read(DEVICE, AUTH).expect("keys");
        let (one, two) = (seal(b"hello", &keys).expect("sealed"), seal(b"hello", &keys).expect("sealed"));
        assert_eq!((one.len(), two.len()), (108, 108));
        assert_ne!(one, two);
        assert_eq!(seal(&[1; 3_993], &keys).expect("sealed").len(), 4_096);
    }

    #[test]
    fn keys_of_another_form_are_no_keys() {
        assert_eq!(PushKeys::read("AAAA", AUTH), None);
        assert_eq!(PushKeys::read(DEVICE, "AAAA"), None);
        let off_the_curve = URL_SAFE_NO_PAD.encode([&[4_u8][..], &[1; 64]].concat());
        let keys = PushKeys::read(&off_the_curve, AUTH).expect("the right form");
        assert_eq!(seal(b"", &keys), Err(SealingError::WrongKey));
    }
}
