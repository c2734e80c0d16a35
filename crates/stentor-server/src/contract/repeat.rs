//! Idempotency keys, which make repeats of a request harmless, through any face.

use serde::Serialize;
use stentor_core::name::IdempotencyKey;

use super::{Problem, ServiceResult};

/// An idempotency key and the request that it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat {
    /// The caller's key.
    pub key: IdempotencyKey,
    /// Hash of the operation's name and its record.
    pub request_hash: [u8; 32],
    /// Hash that versions before this contract stored instead, if the face can compute it.
    pub former_hash: Option<[u8; 32]>,
}

/// A request that may be repeated.
#[derive(Clone)]
pub struct Repeatable<T> {
    /// The request.
    pub request: T,
    /// The idempotency key, if any.
    pub repeat: Option<Repeat>,
}

/// A reply that repeats get again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Kept<T> {
    /// The reply.
    pub reply: T,
    /// True if the reply was stored by an earlier request.
    #[serde(skip)]
    pub replayed: bool,
}

impl Repeat {
    /// Identifies a request by a hash of its operation and its record, not of the bytes received.
    pub fn of(key: IdempotencyKey, operation: &str, record: &impl Serialize) -> ServiceResult<Self> {
        let record = serde_json::to_vec(record).map_err(Problem::unwritten)?;
        Ok(Self { key, request_hash: hash([operation.as_bytes(), &record]), former_hash: None })
    }
}

/// Hashes parts with their lengths, so that their boundaries count.
pub(crate) fn hash<const N: usize>(parts: [&[u8]; N]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::ErrorCode;

    fn repeat(operation: &str, record: &impl Serialize) -> ServiceResult<Repeat> {
        Repeat::of(IdempotencyKey::new("k").expect("fits"), operation, record)
    }

    #[test]
    fn a_request_that_cannot_be_written_has_no_hash() {
        struct Unwritable;
        impl Serialize for Unwritable {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("no words for it"))
            }
        }
        let refused = repeat("messages.send", &Unwritable).expect_err("all such would be one request");
        assert_eq!(refused.code, ErrorCode::Internal);
    }

    #[test]
    fn a_request_is_its_operation_and_its_record() {
        let record = serde_json::json!({"a": 1});
        let hash = |operation, record| repeat(operation, record).expect("a record").request_hash;
        let one = hash("messages.send", &record);
        assert_eq!(one, hash("messages.send", &record));
        assert_ne!(one, hash("schedules.create", &record));
        assert_ne!(one, hash("messages.send", &serde_json::json!({"a": 2})));
    }

    #[test]
    fn no_part_of_a_hash_reaches_into_another() {
        assert_ne!(hash([b"ab", b"c"]), hash([b"a", b"bc"]));
    }
}
