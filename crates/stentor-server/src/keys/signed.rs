//! The service document as a client reads it: verified against the key that it names.

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::service_key::thumbprint;

/// A service document with a valid signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedDocument {
    /// The thumbprint of the key that signed it (RFC 7638).
    pub fingerprint: String,
    /// The document.
    pub document: Value,
}

/// The reason why a document is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// Not a JSON Web Signature of a service document.
    #[error("it is no signed service document")]
    Malformed,
    /// Signed with an algorithm that Stentor does not use.
    #[error("it is signed with another algorithm than EdDSA")]
    OtherAlgorithm,
    /// The named key is not among its keys, or has another thumbprint.
    #[error("it is not signed with the key that it names")]
    OtherKey,
    /// The signature is not valid for this key and text.
    #[error("its signature is not valid")]
    Broken,
}

impl SignedDocument {
    /// Parses a JSON Web Signature in the compact form (RFC 7515) and verifies it.
    pub fn read(text: &str) -> Result<Self, SignatureError> {
        let (signed, signature) = text.trim().rsplit_once('.').ok_or(SignatureError::Malformed)?;
        let (head, payload) = signed.split_once('.').ok_or(SignatureError::Malformed)?;
        let (head, document) = (json(head)?, json(payload)?);
        if head["alg"] != "EdDSA" {
            return Err(SignatureError::OtherAlgorithm);
        }
        let id = head["kid"].as_str().ok_or(SignatureError::Malformed)?;
        let mut keys = document["keys"].as_array().into_iter().flatten();
        let key = keys.find(|key| key["kid"] == id).ok_or(SignatureError::OtherKey)?;
        let x = key["x"].as_str().filter(|x| thumbprint(x) == id).ok_or(SignatureError::OtherKey)?;
        let public = UnparsedPublicKey::new(&ED25519, bytes(x)?);
        public.verify(signed.as_bytes(), &bytes(signature)?).map_err(|_| SignatureError::Broken)?;
        Ok(Self { fingerprint: id.to_owned(), document })
    }
}

fn bytes(text: &str) -> Result<Vec<u8>, SignatureError> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| SignatureError::Malformed)
}

fn json(text: &str) -> Result<Value, SignatureError> {
    serde_json::from_slice(&bytes(text)?).map_err(|_| SignatureError::Malformed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::ServiceKey;
    use super::*;

    fn key() -> ServiceKey {
        ServiceKey::of(tempfile::tempdir().expect("a folder").path()).expect("a key")
    }

    fn signed(by: &ServiceKey, names: &ServiceKey) -> String {
        by.sign(json!({"service": "stentor", "keys": [names.jwk()]}).to_string().as_bytes())
    }

    #[test]
    fn a_document_that_its_key_signed_is_read_and_its_fingerprint_known() {
        let key = key();
        let read = SignedDocument::read(&signed(&key, &key)).expect("it holds");
        assert_eq!((read.fingerprint, &read.document["service"]), (key.id(), &json!("stentor")));
    }

    #[test]
    fn a_document_that_was_changed_or_names_another_key_is_refused() {
        let (key, other) = (key(), key());
        let good = signed(&key, &key);
        let parts: Vec<_> = good.split('.').collect();
        let foreign = signed(&other, &other);
        let payload = foreign.split('.').nth(1).expect("three parts");
        let mixed = [parts[0], payload, parts[2]].join(".");
        assert_eq!(SignedDocument::read(&mixed), Err(SignatureError::OtherKey));
        assert_eq!(SignedDocument::read(&signed(&key, &other)), Err(SignatureError::OtherKey));
        let more = json!({"service": "stentor", "keys": [key.jwk()], "more": 1}).to_string();
        let changed = [parts[0], &URL_SAFE_NO_PAD.encode(more), parts[2]].join(".");
        assert_eq!(SignedDocument::read(&changed), Err(SignatureError::Broken));
        let mut borrowed = key.jwk();
        borrowed["x"] = other.jwk()["x"].clone();
        let claimed = other.sign(json!({"keys": [borrowed]}).to_string().as_bytes());
        assert_eq!(SignedDocument::read(&claimed), Err(SignatureError::OtherKey));
        for garbage in ["", "a.b", "a.b.c", &good[..good.len() / 2]] {
            assert!(SignedDocument::read(garbage).is_err(), "{garbage}");
        }
    }
}
