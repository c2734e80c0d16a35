//! Provider tokens: ES256 JWTs of a team, and the limit on their changes per connection.

use crate::error::EmulatorError;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1, VerificationAlgorithm};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderValue;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const MAX_AGE_S: u64 = 60 * 60;
const MAX_CLOCK_SKEW_S: u64 = 5 * 60;
const MAX_REMEMBERED_TOKENS: usize = 1000;

/// A signing key that a team has registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApnsKey {
    /// The team (`iss`).
    pub team_id: String,
    /// The key (`kid`).
    pub key_id: String,
    /// The public key as PEM (SubjectPublicKeyInfo, P-256); if absent, signatures are not checked.
    #[serde(default)]
    pub public_key_pem: Option<String>,
}

struct KnownKey {
    team_id: String,
    key_id: String,
    public_key: Option<DecodingKey>,
}

#[derive(Deserialize)]
struct PresentedClaims {
    iss: String,
    iat: u64,
}

/// A provider token with a valid signature and valid claims. Its age is checked separately.
pub(super) struct Verified {
    team_id: String,
    issued_at_s: u64,
}

/// Verifies provider tokens, each of them once.
pub(super) struct Verifier {
    keys: Vec<KnownKey>,
    remembered: Mutex<HashMap<Vec<u8>, Arc<Verified>>>,
    min_renewal: Duration,
}

/// The provider token state of a connection.
#[derive(Default)]
pub(super) struct TokenSession {
    current: Option<(HeaderValue, Arc<Verified>)>,
    changed_at: Option<Instant>,
}

impl Verifier {
    pub(super) fn new(keys: &[ApnsKey], min_renewal: Duration) -> Result<Self, EmulatorError> {
        let keys = keys.iter().map(KnownKey::read).collect::<Result<_, _>>()?;
        Ok(Self { keys, remembered: Mutex::default(), min_renewal })
    }

    /// Checks the `authorization` header of a request; the error is the reason.
    pub(super) fn check(
        &self,
        session: &mut TokenSession,
        header: Option<&HeaderValue>,
    ) -> Result<(), &'static str> {
        let header = header.ok_or("MissingProviderToken")?;
        // The same header again is the rule: its signature is not verified for each request.
        if let Some((current, verified)) = &session.current
            && current == header
        {
            return verified.check_age();
        }
        let verified = self.verify(header)?;
        verified.check_age()?;
        session.change(header, verified, self.min_renewal)
    }

    fn verify(&self, header: &HeaderValue) -> Result<Arc<Verified>, &'static str> {
        // The lock is held while a signature is verified: of many connections that begin with one token, one verifies it.
        let mut remembered = self.remembered.lock();
        if let Some(verified) = remembered.get(header.as_bytes()) {
            return Ok(Arc::clone(verified));
        }
        let token = bearer(header).ok_or("MissingProviderToken")?;
        let verified = Arc::new(self.decode(token).ok_or("InvalidProviderToken")?);
        // A sender has a few tokens an hour: clearing the cache now and then is cheaper than tracking the oldest token.
        if remembered.len() >= MAX_REMEMBERED_TOKENS {
            remembered.clear();
        }
        remembered.insert(header.as_bytes().to_vec(), Arc::clone(&verified));
        Ok(verified)
    }

    fn decode(&self, token: &str) -> Option<Verified> {
        // Any other algorithm, `none` with it, is refused before a key is looked at (RFC 8725, section 3.1).
        let header =
            jsonwebtoken::decode_header(token).ok().filter(|header| header.alg == Algorithm::ES256)?;
        let key_id = header.kid?;
        let claims = if self.keys.is_empty() {
            jsonwebtoken::dangerous::insecure_decode::<PresentedClaims>(token).ok()?.claims
        } else {
            self.keys.iter().find(|key| key.key_id == key_id)?.decode(token)?
        };
        Some(Verified { team_id: claims.iss, issued_at_s: claims.iat })
    }
}

impl KnownKey {
    fn read(key: &ApnsKey) -> Result<Self, EmulatorError> {
        let read = |pem: &String| {
            DecodingKey::from_ec_pem(pem.as_bytes()).map_err(|error| EmulatorError::PublicKey {
                owner: format!("APNs key {}", key.key_id),
                reason: error.to_string(),
            })
        };
        let public_key = key.public_key_pem.as_ref().map(read).transpose()?;
        Ok(Self { team_id: key.team_id.clone(), key_id: key.key_id.clone(), public_key })
    }

    fn decode(&self, token: &str) -> Option<PresentedClaims> {
        let claims = match &self.public_key {
            Some(key) if is_signed_in_der(token, key) => {
                jsonwebtoken::dangerous::insecure_decode(token).ok()?
            }
            Some(key) => {
                jsonwebtoken::decode::<PresentedClaims>(token, key, &signature_only(Algorithm::ES256)).ok()?
            }
            None => jsonwebtoken::dangerous::insecure_decode::<PresentedClaims>(token).ok()?,
        };
        Some(claims.claims).filter(|claims| claims.iss == self.team_id)
    }
}

impl Verified {
    fn check_age(&self) -> Result<(), &'static str> {
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if self.issued_at_s > now_s + MAX_CLOCK_SKEW_S {
            return Err("InvalidProviderToken");
        }
        if now_s.saturating_sub(self.issued_at_s) > MAX_AGE_S { Err("ExpiredProviderToken") } else { Ok(()) }
    }
}

impl TokenSession {
    /// Accepts a new token for this connection, if it is of the same team and not too soon after the last change.
    fn change(
        &mut self,
        header: &HeaderValue,
        verified: Arc<Verified>,
        min_renewal: Duration,
    ) -> Result<(), &'static str> {
        if let Some((_, current)) = &self.current {
            if current.team_id != verified.team_id {
                return Err("InvalidProviderToken");
            }
            if self.changed_at.is_some_and(|changed| changed.elapsed() < min_renewal) {
                return Err("TooManyProviderTokenUpdates");
            }
        }
        // The first token of a connection counts as a change too.
        self.current = Some((header.clone(), verified));
        self.changed_at = Some(Instant::now());
        Ok(())
    }
}

/// Returns true if a token's signature by the key is in DER, as Java writes and Apple accepts, instead of the 64 bytes of RFC 7518, section
/// 3.4.
fn is_signed_in_der(token: &str, key: &DecodingKey) -> bool {
    let verify = || {
        let (signed, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let key = key.try_get_as_bytes().ok()?;
        ECDSA_P256_SHA256_ASN1.verify_sig(key, signed.as_bytes(), &signature).ok()
    };
    verify().is_some()
}

/// Returns settings that check a JWT's signature and nothing else.
fn signature_only(algorithm: Algorithm) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    validation
}

fn bearer(header: &HeaderValue) -> Option<&str> {
    let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}
