//! Sealing of secrets, which must not lie on a disk in clear: AES-256-GCM under keys that the operator keeps apart from the data.
//!
//! A record is text: `seal1.` + id of the key (16 hex digits) + `.` + base64url of nonce, ciphertext and tag + `.` + a checksum
//! (8 hex digits) over all before it. The checksum detects a torn record before a key is looked up that never existed. The tag
//! proves that the record is the right one in the right row: the row's name is authenticated with it.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::ports::store::StoreError;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;
/// Most keys that are known at once.
const KEYS_MAX_COUNT: usize = 16;
const MARK: &str = "seal1.";
const SUM_BYTES: usize = 4;

/// Names a key without giving it away: the first 8 bytes of a hash of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SealKeyId([u8; 8]);

impl fmt::Display for SealKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for SealKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The reason why a text is not a set of keys. It reveals nothing of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealKeysError {
    /// The text is empty.
    #[error("there is no key")]
    Empty,
    /// A word is not a key.
    #[error("word {0} is not a key: 32 random bytes as 64 hex digits or in base64 are one")]
    Word(usize),
    /// There are too many keys.
    #[error("there are more than {KEYS_MAX_COUNT} keys")]
    TooMany,
}

/// The form of a stored secret before it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretForm {
    /// JSON as earlier versions kept it.
    Clear,
    /// Sealed under a key.
    Sealed(SealKeyId),
    /// Neither, or not whole.
    Torn,
}

/// The row that a secret belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SealedPlace {
    /// An app's credential at a push service.
    Credential(AppId, ProviderKind),
    /// An app's webhook.
    Webhook(AppId),
}

/// The key that seals, and former keys that only open.
pub struct SealKeys {
    present: SealKey,
    former: Vec<SealKey>,
}

struct SealKey {
    id: SealKeyId,
    key: RandomizedNonceKey,
}

impl SealKeys {
    /// Generates a key.
    pub(crate) fn generate() -> Result<Self, StoreError> {
        let mut bytes = [0; KEY_BYTES];
        let filled = aws_lc_rs::rand::fill(&mut bytes).map_err(|_| "the random generator failed".to_owned());
        let word = filled.map(|()| STANDARD.encode(bytes));
        word.and_then(|word| word.parse().map_err(|error: SealKeysError| error.to_string()))
            .map_err(StoreError::Unavailable)
    }

    /// Returns the id of the key that seals.
    #[must_use]
    pub const fn present(&self) -> SealKeyId {
        self.present.id
    }

    /// Returns the ids of all keys, the one that seals first.
    #[must_use]
    pub fn ids(&self) -> Vec<SealKeyId> {
        self.all().map(|key| key.id).collect()
    }

    /// Seals a secret for its row; `None` when the library fails.
    pub(crate) fn seal(&self, place: SealedPlace, secret: &str) -> Option<String> {
        let mut bytes = secret.as_bytes().to_vec();
        let nonce = self.present.key.seal_in_place_append_tag(aad(place), &mut bytes).ok()?;
        let sealed = [nonce.as_ref().as_slice(), &bytes].concat();
        let record = format!("{MARK}{}.{}", self.present.id, URL_SAFE_NO_PAD.encode(sealed));
        Some(format!("{record}.{}", sum(&record)))
    }

    /// Opens a record of its row; `None` when it is torn, of another row, or sealed under a key that is not known.
    pub(crate) fn open(&self, place: SealedPlace, record: &str) -> Option<String> {
        let (id, sealed) = split(record)?;
        let mut sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, bytes) = sealed.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let key = self.all().find(|key| key.id == id)?;
        let opened = key.key.open_in_place(nonce, aad(place), bytes).ok()?;
        String::from_utf8(opened.to_vec()).ok()
    }

    /// Returns true if a key is among them.
    #[must_use]
    pub fn knows(&self, id: SealKeyId) -> bool {
        self.all().any(|key| key.id == id)
    }

    fn all(&self) -> impl Iterator<Item = &SealKey> {
        std::iter::once(&self.present).chain(&self.former)
    }
}

impl FromStr for SealKeys {
    type Err = SealKeysError;

    /// Reads keys with white space between them; the first seals.
    fn from_str(text: &str) -> Result<Self, SealKeysError> {
        let words = text.split_whitespace().zip(1..);
        let keys = words.map(|(word, number)| SealKey::read(word).ok_or(SealKeysError::Word(number)));
        let mut keys = keys.take(KEYS_MAX_COUNT + 1).collect::<Result<Vec<_>, _>>()?.into_iter();
        let present = keys.next().ok_or(SealKeysError::Empty)?;
        let former: Vec<_> = keys.collect();
        if former.len() >= KEYS_MAX_COUNT {
            Err(SealKeysError::TooMany)
        } else {
            Ok(Self { present, former })
        }
    }
}

impl fmt::Debug for SealKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SealKeys").field(&self.ids()).finish()
    }
}

impl SealKey {
    fn read(word: &str) -> Option<Self> {
        let bytes = key_bytes(word)?;
        let hash = blake3::derive_key("stentor 2026 id of a key that seals", &bytes);
        let (id, _) = hash.split_first_chunk()?;
        let key = RandomizedNonceKey::new(&AES_256_GCM, &bytes).ok()?;
        Some(Self { id: SealKeyId(*id), key })
    }
}

/// Returns the form of a stored secret.
pub(crate) fn kept(record: &str) -> SecretForm {
    match split(record) {
        Some((id, _)) => SecretForm::Sealed(id),
        None if record.starts_with('{') => SecretForm::Clear,
        None => SecretForm::Torn,
    }
}

/// Takes a whole record apart.
fn split(record: &str) -> Option<(SealKeyId, &str)> {
    let (body, given) = record.rsplit_once('.')?;
    let (written, sealed) = body.strip_prefix(MARK)?.split_once('.')?;
    let id = unhex(written)?.try_into().map(SealKeyId).ok()?;
    (given == sum(body) && written == id.to_string()).then_some((id, sealed))
}

/// The additional authenticated data of a secret, which binds it to its row.
fn aad(place: SealedPlace) -> Aad<Vec<u8>> {
    let mut bytes = Vec::new();
    match place {
        SealedPlace::Credential(app, provider) => {
            bytes.extend(b"stentor credential 1 ");
            bytes.extend(app.raw().to_le_bytes());
            bytes.push(provider.code());
        }
        SealedPlace::Webhook(app) => {
            bytes.extend(b"stentor webhook 1 ");
            bytes.extend(app.raw().to_le_bytes());
        }
    }
    Aad::from(bytes)
}

fn sum(body: &str) -> String {
    hex(&blake3::hash(body.as_bytes()).as_bytes()[..SUM_BYTES])
}

fn key_bytes(word: &str) -> Option<[u8; KEY_BYTES]> {
    let in_base64 = || {
        [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD]
            .iter()
            .find_map(|engine| engine.decode(word).ok())
    };
    unhex(word).filter(|bytes| bytes.len() == KEY_BYTES).or_else(in_base64)?.try_into().ok()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.chars().map(|digit| digit.to_digit(16)).collect::<Option<Vec<_>>>()?;
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    Some(pairs.iter().map(|[high, low]| (high << 4 | low) as u8).collect())
}

#[cfg(test)]
mod tests;
