//! The content coding aes128gcm: its header (RFC 8188), and its decryption with the keys of a subscription (RFC 8291).

use super::keys::{POINT_BYTES, SubscriptionKeys};
use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hmac::{self, HMAC_SHA256};

const SALT_BYTES: usize = 16;
/// The salt, the record size in four bytes, and the length of the key's name in one.
const HEADER_BYTES: usize = SALT_BYTES + 5;
const TAG_BYTES: usize = 16;
/// The smallest record size: a tag, a mark, and a byte of content.
const MIN_RECORD_BYTES: usize = TAG_BYTES + 2;
const KEY_BYTES: usize = 16;
/// The mark between the content of the last record and its padding.
const LAST_RECORD: u8 = 2;
const UNCOMPRESSED: u8 = 4;

/// An encrypted message, divided into its parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct SealedMessage<'a> {
    salt: &'a [u8],
    max_record_bytes: usize,
    sender_key: &'a [u8],
    records: &'a [u8],
}

impl<'a> SealedMessage<'a> {
    /// Divides a body; `None` if it does not begin with the header that a sender of Web Push writes.
    pub(super) fn read(body: &'a [u8]) -> Option<Self> {
        let (header, rest) = body.split_at_checked(HEADER_BYTES)?;
        let (salt, sizes) = header.split_at(SALT_BYTES);
        let (record_size, key_length) = sizes.split_first_chunk()?;
        let max_record_bytes = u32::from_be_bytes(*record_size) as usize;
        if key_length != [POINT_BYTES as u8] || max_record_bytes < MIN_RECORD_BYTES {
            return None;
        }
        let (sender_key, records) = rest.split_at_checked(POINT_BYTES)?;
        // The smallest record of all is a tag and a mark.
        let is_whole = sender_key.first() == Some(&UNCOMPRESSED) && records.len() > TAG_BYTES;
        is_whole.then_some(Self { salt, max_record_bytes, sender_key, records })
    }

    /// Decrypts the message as its browser does; the error is a sentence.
    pub(super) fn open(&self, keys: &SubscriptionKeys, auth: &[u8]) -> Result<Vec<u8>, &'static str> {
        if self.records.len() > self.max_record_bytes {
            return Err("a message of Web Push has one record");
        }
        let secret = keys.agree(self.sender_key).ok_or("the sender's key is not a point of P-256")?;
        let (key, nonce) = self.derive(&secret, keys.public(), auth);
        let mut record = self.records.to_vec();
        let key = UnboundKey::new(&AES_128_GCM, &key).map(LessSafeKey::new);
        let opened = key.and_then(|key| {
            key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut record)
        });
        let opened = opened.map_err(|_| "the keys of the subscription do not decrypt it")?;
        let end = opened.iter().rposition(|byte| *byte != 0).ok_or("the record has no mark of its end")?;
        if opened[end] != LAST_RECORD {
            return Err("the only record is not marked as the last one");
        }
        Ok(opened[..end].to_vec())
    }

    /// Derives the key and the nonce of the first record.
    fn derive(&self, secret: &[u8], receiver_key: &[u8], auth: &[u8]) -> ([u8; KEY_BYTES], [u8; NONCE_LEN]) {
        let info = [b"WebPush: info\0", receiver_key, self.sender_key].concat();
        let input = expand::<32>(extract(auth, secret).as_ref(), &info);
        let root = extract(self.salt, &input);
        let key = expand(root.as_ref(), b"Content-Encoding: aes128gcm\0");
        let nonce = expand(root.as_ref(), b"Content-Encoding: nonce\0");
        (key, nonce)
    }
}

/// Extracts a key from a secret (RFC 5869, section 2.2).
fn extract(salt: &[u8], secret: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(HMAC_SHA256, salt), secret)
}

/// Expands a key to at most 32 bytes (RFC 5869, section 2.3).
fn expand<const BYTES: usize>(key: &[u8], info: &[u8]) -> [u8; BYTES] {
    let block = hmac::sign(&hmac::Key::new(HMAC_SHA256, key), &[info, &[1]].concat());
    let mut output = [0; BYTES];
    // One block has 32 bytes, and no caller takes more.
    output.copy_from_slice(&block.as_ref()[..BYTES]);
    output
}
