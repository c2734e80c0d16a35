//! The key with which the server signs its service document, so that a client that has met it once recognizes it.

use std::fmt;
use std::io;
use std::path::Path;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::Rng;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::{damaged, read_or_create};

/// File in the data directory that holds it.
pub(crate) const SERVICE_KEY_FILE: &str = "service.key";
const SEED_BYTES: usize = 32;

/// An Ed25519 key (RFC 8032) that belongs to this installation.
pub struct ServiceKey(Ed25519KeyPair);

impl ServiceKey {
    /// Reads the key of a data directory, or makes it at first start (mode 0600).
    pub fn of(data_dir: &Path) -> io::Result<Self> {
        let path = data_dir.join(SERVICE_KEY_FILE);
        let mut fresh = [0_u8; SEED_BYTES];
        rand::rng().fill_bytes(&mut fresh);
        let stored = read_or_create(&path, || URL_SAFE_NO_PAD.encode(fresh))?;
        let seed = URL_SAFE_NO_PAD.decode(stored.expose_secret()).ok();
        let pair = seed.and_then(|seed| Ed25519KeyPair::from_seed_unchecked(&seed).ok());
        pair.map(Self).ok_or_else(|| damaged(&path, "32 bytes in base64url"))
    }

    /// Returns the public half as a JSON Web Key (RFC 8037). Its `kid` is its thumbprint (RFC 7638).
    #[must_use]
    pub fn jwk(&self) -> Value {
        let x = self.public();
        json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": self.id(), "alg": "EdDSA", "use": "sig"})
    }

    /// Signs a payload as a JSON Web Signature in the compact form (RFC 7515).
    #[must_use]
    pub fn sign(&self, payload: &[u8]) -> String {
        let header = json!({"alg": "EdDSA", "kid": self.id(), "typ": "stentor-service+jws"});
        let head = URL_SAFE_NO_PAD.encode(header.to_string());
        let signed = format!("{head}.{}", URL_SAFE_NO_PAD.encode(payload));
        let signature = self.0.sign(signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn public(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.public_key())
    }

    /// Returns the thumbprint of the key (RFC 7638), which identifies it.
    #[must_use]
    pub fn id(&self) -> String {
        thumbprint(&self.public())
    }
}

/// Returns the hash of the required members, in the order of their names, without spaces.
pub(super) fn thumbprint(x: &str) -> String {
    let members = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, members.as_bytes());
    URL_SAFE_NO_PAD.encode(hash)
}

impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServiceKey({})", self.id())
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};

    use super::*;

    #[test]
    fn a_signature_holds_under_the_public_key_and_the_key_stays_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let key = ServiceKey::of(folder.path()).expect("a key");
        let signed = key.sign(b"what is said");
        let (text, signature) = signed.rsplit_once('.').expect("three parts");
        let again = ServiceKey::of(folder.path()).expect("a key");
        let public = URL_SAFE_NO_PAD.decode(again.jwk()["x"].as_str().expect("text")).expect("base64url");
        let signature = URL_SAFE_NO_PAD.decode(signature).expect("base64url");
        UnparsedPublicKey::new(&ED25519, public).verify(text.as_bytes(), &signature).expect("it holds");
        assert_eq!(key.jwk(), again.jwk());
    }

    #[test]
    fn a_thumbprint_is_that_of_the_rfc() {
        // The key of RFC 8037, appendix A.
        let seed = URL_SAFE_NO_PAD.decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A").expect("base64url");
        let key = ServiceKey(Ed25519KeyPair::from_seed_unchecked(&seed).expect("a key"));
        assert_eq!(key.id(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(SERVICE_KEY_FILE), "short").expect("written");
        assert!(ServiceKey::of(folder.path()).is_err());
    }
}
