//! Encryption of content for web clients, as FCM does it on behalf of its senders: content coding `aesgcm`
//! (draft-ietf-httpbis-encryption-encoding-03, draft-ietf-webpush-encryption-04), which FCM's clients decode.

use aws_lc_rs::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce};
use aws_lc_rs::agreement::{ECDH_P256, PrivateKey};
use aws_lc_rs::error::Unspecified;
use rand::Rng;

use super::channel::McsWebKeys;
use super::data_stanza::unbase64;
use stentor_wire::web_push::{SALT_BYTES, SealingSecret};

/// Bytes of a record before encryption, padding and its length included.
const RECORD_BYTES: usize = 4_096;
/// Bytes of the padding length.
const PAD_LENGTH_BYTES: usize = 2;
/// Info strings for the derivation of the secret, the key and the nonce.
const SECRET_INFO: &[u8] = b"Content-Encoding: auth\0";
const KEY_INFO: &[u8] = b"Content-Encoding: aesgcm\0";
const NONCE_INFO: &[u8] = b"Content-Encoding: nonce\0";

/// Encrypted content, with the parameters that its reader needs beside its own keys.
pub(super) struct McsSealed {
    pub(super) body: Vec<u8>,
    pub(super) salt: [u8; SALT_BYTES],
    pub(super) public_key: Vec<u8>,
}

/// Encrypts content for a client; `None` if its public key is not a point of the curve.
pub(super) fn seal(keys: &McsWebKeys, content: &[u8]) -> Option<McsSealed> {
    let (theirs, auth) = (unbase64(&keys.p256dh)?, unbase64(&keys.auth)?);
    // A key pair for this message alone, so that each derived key encrypts only once.
    let mine = PrivateKey::generate(&ECDH_P256).ok()?;
    let public_key = mine.compute_public_key().ok()?.as_ref().to_vec();
    let mut salt = [0; SALT_BYTES];
    rand::rng().fill_bytes(&mut salt);
    let secret = SealingSecret::agreed(&mine, &theirs, &auth, &[SECRET_INFO]).ok()?;
    let context = context(&theirs, &public_key);
    let (key, nonce) = secret.keys(&salt, &[KEY_INFO, &context], &[NONCE_INFO, &context]).ok()?;
    Some(McsSealed { body: records(&key, nonce, content).ok()?, salt, public_key })
}

/// Returns the context of the key derivation: both public keys, the device's first.
fn context(theirs: &[u8], own: &[u8]) -> Vec<u8> {
    [b"P-256\0", &length(theirs)[..], theirs, &length(own)[..], own].concat()
}

fn records(key: &LessSafeKey, nonce: [u8; NONCE_LEN], content: &[u8]) -> Result<Vec<u8>, Unspecified> {
    const CONTENT_BYTES: usize = RECORD_BYTES - PAD_LENGTH_BYTES;
    let mut body = Vec::with_capacity(content.len() + 64);
    // The last record must be shorter than the others, so content that fills them is followed by an empty one.
    for number in 0..=content.len() / CONTENT_BYTES {
        let rest = content.get(number * CONTENT_BYTES..).unwrap_or_default();
        let mut record = vec![0; PAD_LENGTH_BYTES];
        record.extend_from_slice(rest.get(..CONTENT_BYTES).unwrap_or(rest));
        let nonce = Nonce::assume_unique_for_key(numbered(nonce, number as u64));
        key.seal_in_place_append_tag(nonce, Aad::empty(), &mut record)?;
        body.append(&mut record);
    }
    Ok(body)
}

fn numbered(mut nonce: [u8; NONCE_LEN], number: u64) -> [u8; NONCE_LEN] {
    for (byte, of_number) in nonce.iter_mut().rev().zip(number.to_be_bytes().iter().rev()) {
        *byte ^= of_number;
    }
    nonce
}

fn length(key: &[u8]) -> [u8; 2] {
    u16::try_from(key.len()).unwrap_or_default().to_be_bytes()
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    /// Decrypts sealed content as the drafts describe it.
    fn opened(content: &[u8]) -> Vec<u8> {
        let mine = PrivateKey::generate(&ECDH_P256).expect("a key");
        let public = mine.compute_public_key().expect("a point").as_ref().to_vec();
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let sealed =
            seal(&McsWebKeys { p256dh: encode(&public), auth: encode(&[5; 16]) }, content).expect("sealed");
        let secret =
            SealingSecret::agreed(&mine, &sealed.public_key, &[5; 16], &[b"Content-Encoding: auth\0"]);
        let context = [b"P-256\0\0\x41", &public[..], b"\0\x41", &sealed.public_key].concat();
        let (key, nonce) = secret
            .expect("agreed")
            .keys(
                &sealed.salt,
                &[b"Content-Encoding: aesgcm\0", &context],
                &[b"Content-Encoding: nonce\0", &context],
            )
            .expect("keys");
        let mut content = Vec::new();
        let mut is_last = false;
        for (number, record) in sealed.body.chunks(RECORD_BYTES + 16).enumerate() {
            assert!(!is_last, "a short record is the last");
            is_last = record.len() < RECORD_BYTES + 16;
            let mut record = record.to_vec();
            let nonce = Nonce::assume_unique_for_key(numbered(nonce, number as u64));
            let plain = key.open_in_place(nonce, Aad::empty(), &mut record).expect("a record");
            assert_eq!(plain[..2], [0, 0]);
            content.extend_from_slice(&plain[2..]);
        }
        assert!(is_last, "the end is marked");
        content
    }

    #[test]
    fn what_is_sealed_is_opened_whole_whatever_its_length() {
        for length in [0, 1, 4_093, 4_094, 4_095, 8_188, 9_000] {
            let content: Vec<u8> = (0..length).map(|index: usize| (index % 251) as u8).collect();
            assert_eq!(opened(&content), content, "{length} bytes");
        }
    }

    #[test]
    fn for_what_is_no_key_nothing_is_sealed() {
        let keys =
            McsWebKeys { p256dh: URL_SAFE_NO_PAD.encode([4; 65]), auth: URL_SAFE_NO_PAD.encode([0; 16]) };
        assert!(seal(&keys, b"x").is_none());
    }
}
