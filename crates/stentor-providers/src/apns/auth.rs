//! Provider tokens: ES256 JWTs that Apple wants renewed between 20 and 60 minutes of age.
//!
//! Source: Apple, "Establishing a token-based connection to APNs".

use std::time::Duration;

use http::HeaderValue;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use parking_lot::Mutex;
use serde::Serialize;
use stentor_core::ports::provider::CredentialError;
use stentor_core::time::Timestamp;

use super::credential::ApnsCredential;
use crate::credential::unusable;

/// Age at which a token is renewed.
pub const RENEW_AFTER: Duration = Duration::from_secs(50 * 60);
/// Age before which it is never renewed, even if Apple reports it as expired.
pub const RENEW_NOT_BEFORE: Duration = Duration::from_secs(20 * 60);

/// A token issued further in the future than this was issued by a clock that was ahead.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

#[derive(Serialize)]
struct ProviderTokenClaims<'a> {
    iss: &'a str,
    iat: i64,
}

/// The provider token of one team and key.
pub struct ProviderTokens {
    key: EncodingKey,
    key_id: String,
    team_id: String,
    held: Mutex<ProviderTokenPair>,
}

/// The current token and the previous one: the previous one is used again if a clock was ahead for a while.
#[derive(Default)]
struct ProviderTokenPair {
    last: Option<SignedToken>,
    before: Option<SignedToken>,
}

#[derive(Clone)]
struct SignedToken {
    bearer: HeaderValue,
    issued_at: Timestamp,
}

impl SignedToken {
    /// Returns true if it was issued before now, within the tolerance for clock differences.
    fn is_of(&self, now: Timestamp) -> bool {
        self.issued_at <= now.plus(CLOCK_TOLERANCE)
    }
}

impl ProviderTokenPair {
    /// Returns the newest token that was not issued by a clock ahead of the current one; if all were, the oldest.
    fn best(&self, now: Timestamp) -> Option<&SignedToken> {
        let both = [&self.last, &self.before].into_iter().flatten();
        both.clone().find(|token| token.is_of(now)).or_else(|| both.min_by_key(|token| token.issued_at))
    }
}

impl ProviderTokens {
    /// Prepares for signing; fails if the key cannot be used.
    pub fn new(credential: &ApnsCredential) -> Result<Self, CredentialError> {
        let key = credential.signing_key().map_err(|()| unusable("key_p8", "must be a P-256 key in PEM"))?;
        let (key_id, team_id) = (credential.key_id.clone(), credential.team_id.clone());
        let tokens = Self { key, key_id, team_id, held: Mutex::default() };
        // Detects a key on another curve here instead of at the first message.
        let signs = tokens.sign(Timestamp::default()).is_some();
        if signs { Ok(tokens) } else { Err(unusable("key_p8", "must be a key on the curve P-256")) }
    }

    /// Returns the `authorization` header, with a new token if the last one is old.
    pub fn get(&self, now: Timestamp) -> Option<HeaderValue> {
        // Signed under the lock: Apple does not accept two new tokens within 20 minutes.
        let mut held = self.held.lock();
        match held.best(now) {
            Some(token) if now < token.issued_at.plus(RENEW_AFTER) => Some(token.bearer.clone()),
            _ => self.renew(&mut held, now),
        }
    }

    /// Returns another token than the refused one; `None` if that is too young to be replaced.
    pub fn replace(&self, refused: &HeaderValue, now: Timestamp) -> Option<HeaderValue> {
        let mut held = self.held.lock();
        match held.best(now) {
            Some(token) if token.bearer != refused => Some(token.bearer.clone()),
            // Apple refuses a second new token within 20 minutes, and the connection with it.
            Some(token) if token.is_of(now) && now < token.issued_at.plus(RENEW_NOT_BEFORE) => None,
            _ => self.renew(&mut held, now),
        }
    }

    fn renew(&self, held: &mut ProviderTokenPair, now: Timestamp) -> Option<HeaderValue> {
        let bearer = self.sign(now)?;
        let token = SignedToken { bearer: bearer.clone(), issued_at: now };
        held.before = held.last.replace(token);
        Some(bearer)
    }

    fn sign(&self, now: Timestamp) -> Option<HeaderValue> {
        let claims = ProviderTokenClaims { iss: &self.team_id, iat: now.as_millis() / 1_000 };
        let mut header = Header::new(Algorithm::ES256);
        // Apple's documentation names `alg` and `kid` only.
        header.typ = None;
        header.kid = Some(self.key_id.clone());
        let token = jsonwebtoken::encode(&header, &claims, &self.key).ok()?;
        let mut bearer = HeaderValue::try_from(format!("bearer {token}")).ok()?;
        // Marked as sensitive, so that no log shows it.
        bearer.set_sensitive(true);
        Some(bearer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn tokens() -> ProviderTokens {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key");
        let key = EncodingKey::from_ec_pem(key.serialize_pem().as_bytes()).expect("sound");
        let (key_id, team_id) = ("KEY0123456".to_owned(), "TEAM012345".to_owned());
        ProviderTokens { key, key_id, team_id, held: Mutex::default() }
    }

    #[test]
    fn a_clock_that_was_ahead_for_a_while_leaves_the_token_of_before() {
        let (tokens, now) = (tokens(), Timestamp::from_millis(1_800_000_000_000));
        let first = tokens.get(now);
        let ahead = tokens.get(now.plus(HOUR));
        assert_ne!(ahead, first);
        assert_eq!(tokens.get(now), first, "and no new one, which Apple would call one too many");
        assert_eq!(tokens.get(now.minus(HOUR)), first, "nor while the clock is behind");
    }

    #[test]
    fn a_token_of_a_clock_that_was_ahead_is_replaced_when_it_is_refused() {
        let (tokens, now) = (tokens(), Timestamp::from_millis(1_800_000_000_000));
        let ahead = tokens.get(now.plus(HOUR)).expect("signed");
        assert_eq!(tokens.get(now).as_ref(), Some(&ahead));
        let replaced = tokens.replace(&ahead, now).expect("signed");
        assert_ne!(replaced, ahead);
        assert_eq!(tokens.replace(&replaced, now), None, "it is too young to be replaced again");
    }
}
