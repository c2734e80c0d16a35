//! Provider tokens: ES256 JWTs that Apple wants renewed between 20 and 60 minutes of age.
//!
//! Source: Apple, "Establishing a token-based connection to APNs".

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::Serialize;
use stentor_core::ports::clock::Timestamp;
use stentor_core::ports::provider::CredentialError;

use super::credential::ApnsCredential;
use crate::credential::invalid;

/// Age at which a token is renewed.
pub const RENEW_AFTER: Duration = Duration::from_secs(50 * 60);
/// Age before which it never is, even when Apple calls it expired.
pub const RENEW_NOT_BEFORE: Duration = Duration::from_secs(20 * 60);

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    iat: i64,
}

/// The provider token of one team and key.
pub struct ProviderTokens {
    key: EncodingKey,
    key_id: String,
    team_id: String,
    held: Mutex<Option<Token>>,
}

#[derive(Clone)]
struct Token {
    bearer: HeaderValue,
    issued_at: Timestamp,
}

impl ProviderTokens {
    /// Gets ready to sign.
    pub fn new(credential: &ApnsCredential) -> Result<Self, CredentialError> {
        let key = credential.signing_key().map_err(|()| invalid("key_p8", "must be a P-256 key in PEM"))?;
        let (key_id, team_id) = (credential.key_id.clone(), credential.team_id.clone());
        let tokens = Self { key, key_id, team_id, held: Mutex::default() };
        // A key on another curve is found here, not at the first message.
        let signs = tokens.sign(Timestamp::default()).is_some();
        if signs { Ok(tokens) } else { Err(invalid("key_p8", "must be a key on the curve P-256")) }
    }

    /// Gives the `authorization` header, with a new token when the last one is old.
    pub fn get(&self, now: Timestamp) -> Option<HeaderValue> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        match &*held {
            Some(token) if now < token.issued_at.plus(RENEW_AFTER) => Some(token.bearer.clone()),
            _ => self.renew(&mut held, now),
        }
    }

    /// Gives another token than the refused one; `None` when it is too young to be replaced.
    pub fn replace(&self, refused: &HeaderValue, now: Timestamp) -> Option<HeaderValue> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        match &*held {
            Some(token) if token.bearer != refused => Some(token.bearer.clone()),
            Some(token) if now < token.issued_at.plus(RENEW_NOT_BEFORE) => None,
            _ => self.renew(&mut held, now),
        }
    }

    fn renew(&self, held: &mut Option<Token>, now: Timestamp) -> Option<HeaderValue> {
        let bearer = self.sign(now)?;
        *held = Some(Token { bearer: bearer.clone(), issued_at: now });
        Some(bearer)
    }

    fn sign(&self, now: Timestamp) -> Option<HeaderValue> {
        let claims = Claims { iss: &self.team_id, iat: now.as_millis() / 1_000 };
        let mut header = Header::new(Algorithm::ES256);
        header.typ = None;
        header.kid = Some(self.key_id.clone());
        let token = jsonwebtoken::encode(&header, &claims, &self.key).ok()?;
        let mut bearer = HeaderValue::try_from(format!("bearer {token}")).ok()?;
        bearer.set_sensitive(true);
        Some(bearer)
    }
}
