//! Decryption of sealed messages (RFC 8291), by the device itself.

use aws_lc_rs::aead::{Aad, Nonce};
use aws_lc_rs::agreement::{ECDH_P256, PrivateKey};
use aws_lc_rs::encoding::{AsBigEndian, EcPrivateKeyBin};
use aws_lc_rs::error::Unspecified;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::derivation::{AUTH_BYTES, SALT_BYTES, SealingSecret};
use super::sealing::{HEADER_BYTES, KEY_INFO, LAST_RECORD, NONCE_INFO, PushKeys, SECRET_INFO};

/// Offset of the key id's length, after salt and record size (RFC 8188, 2.1).
const KEY_LENGTH_PLACE: usize = 20;

/// The error for a message that cannot be decrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this was not sealed for this device, or was changed on its way")]
pub struct OpeningError;

impl From<Unspecified> for OpeningError {
    fn from(_: Unspecified) -> Self {
        Self
    }
}

/// The key pair of a device, with its secret.
pub struct PushKeyPair {
    private: PrivateKey,
    public: Vec<u8>,
    auth: [u8; AUTH_BYTES],
}

impl std::fmt::Debug for PushKeyPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PushKeyPair([redacted])")
    }
}

impl PushKeyPair {
    /// Generates a key pair and a secret.
    pub fn generate() -> Result<Self, OpeningError> {
        let mut auth = [0; AUTH_BYTES];
        aws_lc_rs::rand::fill(&mut auth)?;
        Self::of(PrivateKey::generate(&ECDH_P256)?, auth)
    }

    /// Parses the output of [`PushKeyPair::secrets`]; `None` for any other text.
    #[must_use]
    pub fn read(private: &str, auth: &str) -> Option<Self> {
        let private = URL_SAFE_NO_PAD.decode(private).ok()?;
        let private = PrivateKey::from_private_key(&ECDH_P256, &private).ok()?;
        Self::of(private, URL_SAFE_NO_PAD.decode(auth).ok()?.try_into().ok()?).ok()
    }

    fn of(private: PrivateKey, auth: [u8; AUTH_BYTES]) -> Result<Self, OpeningError> {
        let public = private.compute_public_key()?.as_ref().to_vec();
        Ok(Self { private, public, auth })
    }

    /// Returns the private key and the secret, which only the device may know, for storage.
    pub fn secrets(&self) -> Result<(String, String), OpeningError> {
        let private: EcPrivateKeyBin<'_> = self.private.as_be_bytes()?;
        Ok((URL_SAFE_NO_PAD.encode(private.as_ref()), URL_SAFE_NO_PAD.encode(self.auth)))
    }

    /// Returns the public keys with which messages are sealed.
    #[must_use]
    pub fn public(&self) -> Option<PushKeys> {
        PushKeys::read(&URL_SAFE_NO_PAD.encode(&self.public), &URL_SAFE_NO_PAD.encode(self.auth))
    }

    /// Decrypts a body of the encoding `aes128gcm`, of one record.
    pub fn open(&self, body: &[u8]) -> Result<Vec<u8>, OpeningError> {
        let (header, record) = body.split_at_checked(HEADER_BYTES).ok_or(OpeningError)?;
        let (salt, theirs) = (&header[..SALT_BYTES], &header[KEY_LENGTH_PLACE + 1..]);
        if usize::from(header[KEY_LENGTH_PLACE]) != theirs.len() {
            return Err(OpeningError);
        }
        let info = [SECRET_INFO, &self.public[..], theirs];
        let secret = SealingSecret::agreed(&self.private, theirs, &self.auth, &info)?;
        let (key, nonce) = secret.keys(salt, &[KEY_INFO], &[NONCE_INFO])?;
        let mut record = record.to_vec();
        let text = key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut record)?;
        // The bytes after the delimiter are padding.
        let end = text.iter().rposition(|byte| *byte != 0).filter(|place| text[*place] == LAST_RECORD);
        Ok(text[..end.ok_or(OpeningError)?].to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::super::sealing::seal;
    use super::*;

    #[test]
    fn what_is_sealed_for_a_device_is_opened_by_it_alone_whatever_its_length() {
        let (own, other) = (PushKeyPair::generate().expect("keys"), PushKeyPair::generate().expect("keys"));
        let keys = own.public().expect("keys");
        for length in [0, 1, 3_993, 3_994, 20_000] {
            let text: Vec<u8> = (0..length).map(|index: usize| (index % 3) as u8).collect();
            let body = seal(&text, &keys).expect("sealed");
            assert_eq!(own.open(&body), Ok(text), "{length} bytes");
            assert_eq!(other.open(&body), Err(OpeningError));
        }
    }

    #[test]
    fn what_was_changed_or_cut_is_not_opened() {
        let own = PushKeyPair::generate().expect("keys");
        let body = seal(b"hello", &own.public().expect("keys")).expect("sealed");
        for place in [0, 20, 21, 40, HEADER_BYTES, body.len() - 1] {
            let mut changed = body.clone();
            changed[place] ^= 1;
            assert_eq!(own.open(&changed), Err(OpeningError), "byte {place}");
        }
        for length in [0, 20, HEADER_BYTES, HEADER_BYTES + 5] {
            assert_eq!(own.open(&body[..length]), Err(OpeningError), "{length} bytes");
        }
    }

    #[test]
    fn keys_are_read_as_they_were_kept() {
        let own = PushKeyPair::generate().expect("keys");
        let (private, auth) = own.secrets().expect("texts");
        let read = PushKeyPair::read(&private, &auth).expect("keys");
        assert_eq!(read.public(), own.public());
        assert!(PushKeyPair::read(&auth, &private).is_none());
    }
}
