//! Identification of the sender (RFC 8292): a token signed with the app's key, one for each push service.

use std::time::Duration;

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey};
use aws_lc_rs::encoding::{AsBigEndian, EcPrivateKeyBin};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::HeaderValue;
use serde_json::json;
use stentor_core::time::Timestamp;

/// Validity of a token. RFC 8292 allows 24 hours; push services with a clock that is behind refuse so long a one.
const VALID: Duration = Duration::from_secs(8 * 3_600);
/// Age at which a token is renewed.
const RENEW_AFTER: Duration = Duration::from_secs(4 * 3_600);
/// A token signed further in the future than this was signed by a clock that was ahead.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);
/// Bytes of a private key.
const PRIVATE_KEY_BYTES: usize = 32;

/// A key pair of an app.
pub(super) struct VapidKeyPair {
    pair: EcdsaKeyPair,
    /// The public key in base64url: the `applicationServerKey` of the app's subscriptions.
    public: String,
}

impl VapidKeyPair {
    /// Reads a private key: 32 bytes in base64url, or PEM as OpenSSL writes it; `None` for any other text.
    pub(super) fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.starts_with("-----BEGIN") {
            let lines = text.lines().filter(|line| !line.starts_with("-----"));
            let der = STANDARD.decode(lines.map(str::trim).collect::<String>()).ok()?;
            return EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, &der)
                .ok()
                .map(Self::of);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
        let bytes: [u8; PRIVATE_KEY_BYTES] = bytes.try_into().ok()?;
        let public = PrivateKey::from_private_key(&ECDH_P256, &bytes).ok()?.compute_public_key().ok()?;
        let (algorithm, public) = (&ECDSA_P256_SHA256_FIXED_SIGNING, public.as_ref());
        EcdsaKeyPair::from_private_key_and_public_key(algorithm, &bytes, public).ok().map(Self::of)
    }

    /// Generates a private key, as [`Self::read`] reads it; `None` if the machine lacks randomness.
    pub(super) fn generate() -> Option<String> {
        let private = PrivateKey::generate(&ECDH_P256).ok()?;
        let bytes: EcPrivateKeyBin<'_> = private.as_be_bytes().ok()?;
        Some(URL_SAFE_NO_PAD.encode(bytes.as_ref()))
    }

    fn of(pair: EcdsaKeyPair) -> Self {
        let public = URL_SAFE_NO_PAD.encode(pair.public_key());
        Self { pair, public }
    }

    /// Returns the public key in base64url.
    pub(super) fn public(&self) -> &str {
        &self.public
    }

    /// Signs the header for a push service.
    fn sign(&self, origin: &str, subject: &str, now: Timestamp) -> Option<HeaderValue> {
        let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let expires_s = now.plus(VALID).as_millis() / 1_000;
        let claims = json!({"aud": origin, "exp": expires_s, "sub": subject});
        let signed = format!("{}.{}", part(json!({"typ": "JWT", "alg": "ES256"})), part(claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).ok()?;
        let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature));
        let mut header = HeaderValue::try_from(format!("vapid t={token}, k={}", self.public)).ok()?;
        // Marked as sensitive, so that no log shows it.
        header.set_sensitive(true);
        Some(header)
    }
}

impl std::fmt::Debug for VapidKeyPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VapidKeyPair").field("public", &self.public).finish_non_exhaustive()
    }
}

/// The signed header for one push service, renewed before it expires.
#[derive(Default)]
pub(super) struct VapidHeader(Option<(HeaderValue, Timestamp)>);

impl VapidHeader {
    /// Returns the header, newly signed if the last one is old; `None` if it cannot be signed.
    pub(super) fn get(
        &mut self,
        key: &VapidKeyPair,
        origin: &str,
        subject: &str,
        now: Timestamp,
    ) -> Option<HeaderValue> {
        let is_current = |at: Timestamp| now < at.plus(RENEW_AFTER) && at <= now.plus(CLOCK_TOLERANCE);
        if let Some((header, _)) = self.0.as_ref().filter(|(_, at)| is_current(*at)) {
            return Some(header.clone());
        }
        let header = key.sign(origin, subject, now)?;
        self.0 = Some((header.clone(), now));
        Some(header)
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
    use serde_json::Value;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);
    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn pair() -> VapidKeyPair {
        VapidKeyPair::read(&VapidKeyPair::generate().expect("a key")).expect("the same key")
    }

    fn claims(header: &HeaderValue) -> Value {
        let text = header.to_str().expect("text").strip_prefix("vapid t=").expect("the scheme").to_owned();
        let (token, key) = text.split_once(", k=").expect("the key");
        let (signed, signature) = token.rsplit_once('.').expect("a JWT");
        let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text).expect("base64url");
        let key = decoded(key);
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &key);
        key.verify(signed.as_bytes(), &decoded(signature)).expect("signed with the key");
        let (head, claims) = signed.split_once('.').expect("a JWT");
        assert_eq!(decoded(head), br#"{"alg":"ES256","typ":"JWT"}"#);
        serde_json::from_slice(&decoded(claims)).expect("JSON")
    }

    #[test]
    fn a_header_names_the_push_service_its_end_and_the_sender() {
        let header =
            VapidHeader::default().get(&pair(), "https://push.example", "mailto:me@app.example", NOW);
        let header = header.expect("signed");
        assert!(header.is_sensitive());
        let expected =
            json!({"aud": "https://push.example", "exp": 1_800_028_800, "sub": "mailto:me@app.example"});
        assert_eq!(claims(&header), expected);
    }

    #[test]
    fn a_header_is_renewed_when_it_is_old_or_of_a_clock_that_was_ahead() {
        let (pair, mut held) = (pair(), VapidHeader::default());
        let mut get = |now| held.get(&pair, "https://push.example", "mailto:a@b", now).expect("signed");
        let first = get(NOW);
        assert_eq!(get(NOW.plus(RENEW_AFTER - Duration::from_secs(1))), first);
        let second = get(NOW.plus(RENEW_AFTER));
        assert_ne!(second, first);
        assert_ne!(get(NOW.plus(RENEW_AFTER - HOUR)), second, "it was signed an hour ahead");
    }

    #[test]
    fn a_key_is_read_as_other_senders_keep_it() {
        let pem = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key");
        let public = URL_SAFE_NO_PAD.encode(pem.public_key_raw());
        assert_eq!(VapidKeyPair::read(&pem.serialize_pem()).expect("read").public(), public);
        let raw = VapidKeyPair::generate().expect("a key");
        assert_eq!(raw.len(), 43);
        for wrong in
            ["", "AAAA", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", &"A".repeat(43)]
        {
            assert!(VapidKeyPair::read(wrong).is_none(), "{wrong}");
        }
    }
}
