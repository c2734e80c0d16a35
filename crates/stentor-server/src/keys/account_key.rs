//! Key pairs of service accounts: RSA with 2,048 bits, as the libraries of app servers expect it.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::SecretString;

/// Letters of a line in PEM (RFC 7468).
const PEM_LINE_CHARS: usize = 64;
/// Bytes of the hash that names a public key.
const KEY_ID_BYTES: usize = 20;

/// A new key pair: the private half for the signer, the public half to be stored.
pub struct AccountKey {
    /// PKCS #8 in PEM.
    pub private_pem: SecretString,
    /// `RSAPublicKey` in DER (RFC 8017).
    pub public: Vec<u8>,
}

impl AccountKey {
    /// Generates a new pair, which takes some tenths of a second; `None` if the library fails.
    #[must_use]
    pub fn generate() -> Option<Self> {
        let pair = KeyPair::generate(KeySize::Rsa2048).ok()?;
        let private = AsDer::<Pkcs8V1Der<'_>>::as_der(&pair).ok()?;
        let public = pair.public_key().as_ref().to_vec();
        Some(Self { private_pem: pem(private.as_ref()).into(), public })
    }
}

/// Returns the id of a public key: the beginning of its hash.
#[must_use]
pub fn key_id(public: &[u8]) -> String {
    let hash = digest(&SHA256, public);
    hash.as_ref().iter().take(KEY_ID_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns true if a signature of RS256 (RFC 7518) is valid under a public key.
#[must_use]
pub fn is_signed(public: &[u8], signed: &[u8], signature: &[u8]) -> bool {
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public).verify(signed, signature).is_ok()
}

fn pem(der: &[u8]) -> String {
    let letters = STANDARD.encode(der);
    let lines = letters.as_bytes().chunks(PEM_LINE_CHARS).map(String::from_utf8_lossy);
    let lines: Vec<_> = lines.collect();
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn what_the_private_half_signs_holds_under_the_public_half_alone() {
        let (one, other) = (AccountKey::generate().expect("made"), AccountKey::generate().expect("made"));
        let text: String =
            one.private_pem.expose_secret().lines().filter(|line| !line.starts_with("--")).collect();
        let pair = RsaKeyPair::from_pkcs8(&STANDARD.decode(text).expect("base64")).expect("a key");
        let mut signature = vec![0; pair.public_modulus_len()];
        pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), b"said", &mut signature).expect("signed");
        assert!(is_signed(&one.public, b"said", &signature));
        assert!(!is_signed(&one.public, b"sain", &signature));
        assert!(!is_signed(&other.public, b"said", &signature) && !is_signed(b"", b"said", &signature));
        assert_ne!(key_id(&one.public), key_id(&other.public));
        assert_eq!(key_id(&one.public).len(), 40);
    }
}
