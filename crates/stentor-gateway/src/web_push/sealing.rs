//! Sealing for a device (RFC 8291): only who has the device's private key can read it, and we do not.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{self, ECDH_P256, PrivateKey, UnparsedPublicKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use rand::Rng;

use super::vapid::VapidKey;

/// Bytes of the secret that a device gives with its key.
const AUTH_BYTES: usize = 16;
const SALT_BYTES: usize = 16;
/// Size of the one record: everything is in it (RFC 8291, 4).
const RECORD_BYTES: u32 = 4_096;
/// Salt, record size, length of the key's name, and the key.
const HEADER_BYTES: usize = 16 + 4 + 1 + 65;
const TAG_BYTES: usize = 16;
/// Largest text that fits: a record less its header, tag and delimiter.
const TEXT_MAX_BYTES: usize = RECORD_BYTES as usize - HEADER_BYTES - TAG_BYTES - 1;
/// Ends the text of the last record (RFC 8188, 2).
const LAST_RECORD: u8 = 2;

/// Why something could not be sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealingError {
    /// The text does not fit into one record.
    #[error("at most {TEXT_MAX_BYTES} bytes can be sealed")]
    TooLarge,
    /// The device's key is no point of the curve, or the machine lacks randomness.
    #[error("the key of the device cannot be used")]
    WrongKey,
}

impl From<Unspecified> for SealingError {
    fn from(_: Unspecified) -> Self {
        Self::WrongKey
    }
}

/// What a device registers to get sealed messages: its public key and its secret.
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
    /// Takes `p256dh` and `auth` of a subscription, in base64url; `None` for what has another form.
    #[must_use]
    pub fn read(p256dh: &str, auth: &str) -> Option<Self> {
        use base64::Engine;
        let auth =
            base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(auth.trim_end_matches('=')).ok()?;
        Some(Self { key: VapidKey::read(p256dh)?, auth: auth.try_into().ok()? })
    }
}

/// Seals a text for a device; returns the body, to be sent with the encoding `aes128gcm`.
pub fn seal(text: &[u8], keys: &PushKeys) -> Result<Vec<u8>, SealingError> {
    let mut salt = [0; SALT_BYTES];
    rand::rng().fill_bytes(&mut salt);
    seal_with(text, keys, &PrivateKey::generate(&ECDH_P256)?, salt)
}

/// Seals with a given key pair and salt, neither of which is ever used again.
fn seal_with(
    text: &[u8],
    keys: &PushKeys,
    own: &PrivateKey,
    salt: [u8; SALT_BYTES],
) -> Result<Vec<u8>, SealingError> {
    if text.len() > TEXT_MAX_BYTES {
        return Err(SealingError::TooLarge);
    }
    let own_public = own.compute_public_key()?;
    let theirs = UnparsedPublicKey::new(&ECDH_P256, keys.key.as_bytes());
    let input = agreement::agree(own, theirs, SealingError::WrongKey, |secret| {
        let info = [b"WebPush: info\0", &keys.key.as_bytes()[..], own_public.as_ref()];
        Ok(derived::<32>(&keys.auth, secret, &info)?)
    })?;
    let key = derived::<16>(&salt, &input, &[b"Content-Encoding: aes128gcm\0"])?;
    let nonce = derived::<12>(&salt, &input, &[b"Content-Encoding: nonce\0"])?;
    let mut sealed = [text, &[LAST_RECORD]].concat();
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key)?);
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut sealed)?;
    let mut body = Vec::with_capacity(HEADER_BYTES + sealed.len());
    body.extend_from_slice(&salt);
    body.extend_from_slice(&RECORD_BYTES.to_be_bytes());
    body.push(own_public.as_ref().len() as u8);
    body.extend_from_slice(own_public.as_ref());
    body.extend_from_slice(&sealed);
    Ok(body)
}

/// A length, for the library.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Derives a key of `N` bytes (RFC 5869).
fn derived<const N: usize>(salt: &[u8], input: &[u8], info: &[&[u8]]) -> Result<[u8; N], Unspecified> {
    let mut key = [0; N];
    let extracted = Salt::new(HKDF_SHA256, salt).extract(input);
    extracted.expand(info, Length(N))?.fill(&mut key)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

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
        let largest = seal(&[1; TEXT_MAX_BYTES], &keys).expect("sealed");
        assert_eq!(largest.len(), 4_096);
        assert_eq!(seal(&[1; TEXT_MAX_BYTES + 1], &keys), Err(SealingError::TooLarge));
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
