//! Authentication of senders: their token (RFC 8292, and the draft before it), checked against the key that it names.

use std::time::Duration;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use stentor_core::id::AppId;
use stentor_core::time::Timestamp;
use stentor_wire::web_push::VapidKey;

use super::refusal::PushRefusal;

/// Longest accepted header with a token.
const HEADER_MAX_BYTES: usize = 4_096;
/// Longest remaining validity of a token (RFC 8292, 2).
const VALID_MAX: Duration = Duration::from_secs(24 * 3_600);

/// A token with its alleged key; nothing in it is trusted before [`Self::check`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VapidToken<'a> {
    token: &'a str,
    key: VapidKey,
}

impl<'a> VapidToken<'a> {
    /// Returns true if the holder of a key has signed that it belongs to an app: a token as in RFC 8292 with the app's id as `aud`. A
    /// token for a push service does not count. The expiry is ignored, because the statement stays true.
    #[must_use]
    pub fn proves(token: &'a str, key: VapidKey, app: AppId) -> bool {
        let claims = Self { token, key }.claims();
        claims.is_ok_and(|claims| claims["aud"] == app.to_string())
    }

    /// Parses `Authorization: vapid t=…, k=…`, or a draft's `WebPush …` and `Bearer …` with `Crypto-Key: p256ecdsa=…`. Returns `None` if
    /// the sender does not authenticate.
    pub fn read(
        authorization: Option<&'a str>,
        crypto_key: Option<&str>,
    ) -> Result<Option<Self>, PushRefusal> {
        let Some(text) = authorization else { return Ok(None) };
        if text.len() > HEADER_MAX_BYTES || crypto_key.is_some_and(|text| text.len() > HEADER_MAX_BYTES) {
            return Err(unauthorized("the header is too long"));
        }
        let (scheme, rest) = text.trim().split_once([' ', '\t']).unwrap_or((text.trim(), ""));
        match scheme.to_ascii_lowercase().as_str() {
            "vapid" => Self::of_parameters(rest).map(Some),
            "webpush" | "bearer" => Self::of_draft(rest.trim(), crypto_key).map(Some),
            _ => Err(unauthorized("the scheme must be `vapid`, with t= and k=")),
        }
    }

    fn of_parameters(text: &'a str) -> Result<Self, PushRefusal> {
        let token = parameter(text, "t").ok_or_else(|| unauthorized("the token is missing: t="))?;
        let key = parameter(text, "k").ok_or_else(|| unauthorized("the public key is missing: k="))?;
        Ok(Self { token, key: VapidKey::read(key).ok_or_else(no_key)? })
    }

    fn of_draft(token: &'a str, crypto_key: Option<&str>) -> Result<Self, PushRefusal> {
        let key = crypto_key.and_then(|text| parameter(text, "p256ecdsa"));
        let key = key.ok_or_else(|| unauthorized("the public key is missing: Crypto-Key with p256ecdsa="))?;
        Ok(Self { token, key: VapidKey::read(key).ok_or_else(no_key)? })
    }

    /// Checks signature, audience and expiry; returns the key that the sender has proved to hold. `is_ours` returns true for the origins of
    /// the push service.
    pub fn check(&self, is_ours: impl Fn(&str) -> bool, now: Timestamp) -> Result<VapidKey, PushRefusal> {
        check_claims(&self.claims()?, is_ours, now)?;
        Ok(self.key)
    }

    /// Returns the claims signed by the holder of the key.
    fn claims(&self) -> Result<Value, PushRefusal> {
        let malformed = || unauthorized("the token is no JWT");
        let (signed, signature) = self.token.rsplit_once('.').ok_or_else(malformed)?;
        let (header, claims) = signed.split_once('.').ok_or_else(malformed)?;
        let header = json_of(header).ok_or_else(malformed)?;
        // Only this algorithm: the token must not choose how it is checked.
        if header["alg"] != "ES256" {
            return Err(unauthorized("the token must be signed with ES256"));
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| malformed())?;
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.as_bytes());
        // Before the claims, which count only if the holder of the key has signed them.
        let verified = key.verify(signed.as_bytes(), &signature);
        verified.map_err(|_| unauthorized("the signature is not that of the public key"))?;
        json_of(claims).ok_or_else(malformed)
    }
}

fn check_claims(claims: &Value, is_ours: impl Fn(&str) -> bool, now: Timestamp) -> Result<(), PushRefusal> {
    let audience = match &claims["aud"] {
        Value::String(one) => is_ours(one),
        Value::Array(several) => several.iter().filter_map(Value::as_str).any(is_ours),
        _ => return Err(unauthorized("the claim aud is missing: the origin of the push service")),
    };
    if !audience {
        return Err(unauthorized(
            "the claim aud names another origin than the push service's, which its operator names by gateway.public_url",
        ));
    }
    let ends = claims["exp"].as_f64().filter(|seconds| seconds.is_finite());
    let ends = ends.ok_or_else(|| unauthorized("the claim exp is missing: seconds since 1970"))?;
    let now = now.as_millis() as f64 / 1_000.0;
    if ends <= now {
        return Err(unauthorized("the token has expired"));
    }
    if ends > now + VALID_MAX.as_secs_f64() {
        return Err(unauthorized("the claim exp is more than 24 hours ahead"));
    }
    match &claims["sub"] {
        Value::Null | Value::String(_) => Ok(()),
        _ => Err(unauthorized("the claim sub must be a text")),
    }
}

/// Returns true if two texts name the same origin (RFC 6454): letter case, a trailing slash and a scheme's default port are ignored.
#[must_use]
pub fn is_origin(text: &str, origin: &str) -> bool {
    fn plain(text: &str) -> String {
        let text = text.trim_end_matches('/').to_ascii_lowercase();
        let own_port = if text.starts_with("https:") { ":443" } else { ":80" };
        text.strip_suffix(own_port).map_or(text.clone(), ToOwned::to_owned)
    }
    plain(text) == plain(origin)
}

/// Finds a parameter of a header that separates parameters by `,` or `;`; its value may be quoted.
pub(super) fn parameter<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = header.split([',', ';']).filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| key.trim().eq_ignore_ascii_case(name))?;
    Some(value.trim().trim_matches('"')).filter(|value| !value.is_empty())
}

fn json_of(part: &str) -> Option<Value> {
    let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
    serde_json::from_slice(&bytes).ok().filter(Value::is_object)
}

fn no_key() -> PushRefusal {
    unauthorized("the public key is not 65 bytes of an uncompressed P-256 point in base64url")
}

fn unauthorized(why: &'static str) -> PushRefusal {
    PushRefusal::Unauthorized(why)
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const ORIGIN: &str = "https://push.example";
    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);
    const NOW_SECONDS: i64 = 1_000_000;

    fn pair() -> EcdsaKeyPair {
        EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key pair")
    }

    fn token(pair: &EcdsaKeyPair, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = pair.sign(&SystemRandom::new(), signed.as_bytes()).expect("signed");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn checked(claims: &Value) -> Result<VapidKey, PushRefusal> {
        let pair = pair();
        let token = token(&pair, &json!({"alg": "ES256", "typ": "JWT"}), claims);
        let key = URL_SAFE_NO_PAD.encode(pair.public_key());
        let header = format!("vapid t={token}, k={key}");
        let read = VapidToken::read(Some(&header), None).expect("read").expect("a token");
        read.check(|origin| is_origin(origin, ORIGIN), NOW)
    }

    #[test]
    fn a_token_that_ends_within_a_day_proves_its_key() {
        for ahead in [1, 86_400] {
            let claims = json!({"aud": ORIGIN, "exp": NOW_SECONDS + ahead, "sub": "mailto:me@example"});
            assert!(checked(&claims).is_ok(), "{ahead}");
        }
        assert!(checked(&json!({"aud": ["https://other", ORIGIN], "exp": NOW_SECONDS + 1})).is_ok());
    }

    #[test]
    fn a_token_for_others_or_for_another_time_proves_nothing() {
        for claims in [
            json!({"aud": ORIGIN, "exp": NOW_SECONDS}),
            json!({"aud": ORIGIN, "exp": NOW_SECONDS + 86_401}),
            json!({"aud": ORIGIN}),
            json!({"aud": ORIGIN, "exp": "tomorrow"}),
            json!({"aud": "https://push.example.net", "exp": NOW_SECONDS + 1}),
            json!({"aud": [], "exp": NOW_SECONDS + 1}),
            json!({"exp": NOW_SECONDS + 1}),
            json!({"aud": ORIGIN, "exp": NOW_SECONDS + 1, "sub": 5}),
        ] {
            assert!(checked(&claims).is_err(), "{claims}");
        }
    }

    #[test]
    fn another_key_and_another_algorithm_are_refused() {
        let (pair, other) = (pair(), pair());
        let claims = json!({"aud": ORIGIN, "exp": NOW_SECONDS + 1});
        for (signer, alg) in [(&other, "ES256"), (&pair, "none"), (&pair, "HS256")] {
            let token = token(signer, &json!({"alg": alg}), &claims);
            let key = URL_SAFE_NO_PAD.encode(pair.public_key());
            let header = format!("vapid t={token}, k={key}");
            let read = VapidToken::read(Some(&header), None).expect("read").expect("a token");
            assert!(read.check(|_| true, NOW).is_err());
        }
    }

    #[test]
    fn headers_of_the_draft_name_the_key_beside_the_token() {
        let pair = pair();
        let token = token(&pair, &json!({"alg": "ES256"}), &json!({"aud": ORIGIN, "exp": NOW_SECONDS + 1}));
        let crypto_key = format!("dh=abc;p256ecdsa={}", URL_SAFE_NO_PAD.encode(pair.public_key()));
        for scheme in ["WebPush", "Bearer"] {
            let header = format!("{scheme} {token}");
            let read = VapidToken::read(Some(&header), Some(&crypto_key)).expect("read").expect("a token");
            assert!(read.check(|origin| origin == ORIGIN, NOW).is_ok());
        }
        assert!(VapidToken::read(Some("WebPush a.b.c"), Some("dh=abc")).is_err());
        assert!(VapidToken::read(Some("Basic a"), None).is_err());
        assert_eq!(VapidToken::read(None, None), Ok(None));
    }

    #[test]
    fn an_origin_may_name_its_usual_port() {
        assert!(is_origin("HTTPS://Push.example:443/", ORIGIN));
        assert!(is_origin("http://127.0.0.1:8080", "http://127.0.0.1:8080/"));
        assert!(!is_origin("http://push.example", ORIGIN));
        assert!(!is_origin("https://push.example:80", ORIGIN));
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic(authorization in ".{0,200}", crypto_key in proptest::option::of(".{0,100}")) {
            for text in [authorization.clone(), format!("vapid t={authorization}, k={}", URL_SAFE_NO_PAD.encode([4; 65]))] {
                if let Ok(Some(token)) = VapidToken::read(Some(&text), crypto_key.as_deref()) {
                    prop_assert!(token.check(|_| true, NOW).is_err());
                }
            }
        }
    }
}
