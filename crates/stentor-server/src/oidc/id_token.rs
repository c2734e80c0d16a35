//! The ID token: its signature and its claims (OpenID Connect Core, section 3.1.3.7).

use jsonwebtoken::{Algorithm, Header, Validation};
use serde::Deserialize;
use serde_json::{Map, Value};
use subtle::ConstantTimeEq;

use super::key_set::IssuerKey;
use super::refusal::LoginRefusal;

/// Algorithms of signatures. None of them has a secret that both sides know.
const ALGORITHMS: [Algorithm; 2] = [Algorithm::RS256, Algorithm::ES256];
/// Longest token.
const TOKEN_MAX_BYTES: usize = 64 * 1_024;

/// A token that is not verified yet.
#[derive(Debug)]
pub(super) struct IdToken<'a> {
    text: &'a str,
    header: Header,
}

/// The claims of a token.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    iss: String,
    pub(super) sub: String,
    aud: Audience,
    azp: Option<String>,
    exp: f64,
    iat: f64,
    nbf: Option<f64>,
    nonce: Option<String>,
    #[serde(flatten)]
    pub(super) more: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

/// What the claims must say.
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) nonce: &'a str,
    pub(super) now_seconds: i64,
    pub(super) leeway_seconds: i64,
}

impl<'a> IdToken<'a> {
    /// Reads the head of a token, and rejects algorithms other than those above.
    pub(super) fn read(text: &'a str) -> Result<Self, LoginRefusal> {
        if text.len() > TOKEN_MAX_BYTES {
            return Err(LoginRefusal::invalid("it is too long"));
        }
        let header = jsonwebtoken::decode_header(text);
        let header = header
            .map_err(|_| LoginRefusal::invalid("its head cannot be read, or has no known algorithm"))?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(LoginRefusal::invalid("its algorithm is not permitted"));
        }
        // RFC 7515, section 4.1.11: there is no extension that this server knows.
        if header.crit.is_some() {
            return Err(LoginRefusal::invalid("it needs an extension"));
        }
        Ok(Self { text, header })
    }

    pub(super) const fn algorithm(&self) -> Algorithm {
        self.header.alg
    }

    pub(super) fn key_name(&self) -> Option<&str> {
        self.header.kid.as_deref()
    }

    /// Verifies the signature and returns the claims, which are not checked yet.
    pub(super) fn verified(&self, key: &IssuerKey) -> Result<Claims, LoginRefusal> {
        // The claims are checked below, by the server's clock.
        let mut signature_only = Validation::new(key.algorithm);
        signature_only.required_spec_claims.clear();
        (signature_only.validate_exp, signature_only.validate_aud) = (false, false);
        let token = jsonwebtoken::decode::<Claims>(self.text, &key.key, &signature_only);
        let token =
            token.map_err(|_| LoginRefusal::invalid("its signature is wrong, or a claim cannot be read"))?;
        Ok(token.claims)
    }
}

impl Claims {
    /// Rejects claims about another issuer, client, time or login.
    pub(super) fn check(&self, expected: &Expected<'_>) -> Result<(), LoginRefusal> {
        let (now, leeway) = (expected.now_seconds as f64, expected.leeway_seconds as f64);
        let nonce = self.nonce.as_deref().unwrap_or_default().as_bytes();
        let holds = [
            (self.iss == expected.issuer, "it is of another issuer"),
            (self.aud.has(expected.client_id), "it is for another client"),
            (self.is_given_to(expected.client_id), "it was given to another client"),
            (self.exp > now - leeway, "it has expired"),
            (self.iat <= now + leeway, "it comes from the future"),
            (self.nbf.is_none_or(|begin| begin <= now + leeway), "it is not valid yet"),
            (nonce.ct_eq(expected.nonce.as_bytes()).into(), "it is of another login"),
        ];
        match holds.into_iter().find(|(holds, _)| !holds) {
            None => Ok(()),
            Some((_, reason)) => Err(LoginRefusal::invalid(reason)),
        }
    }

    /// Returns true if the token was issued to the client: a token for several must say so.
    fn is_given_to(&self, client_id: &str) -> bool {
        match &self.azp {
            Some(party) => party == client_id,
            None => !self.aud.is_several(),
        }
    }
}

impl Audience {
    fn has(&self, client_id: &str) -> bool {
        match self {
            Self::One(one) => one == client_id,
            Self::Many(many) => many.iter().any(|one| one == client_id),
        }
    }

    fn is_several(&self) -> bool {
        matches!(self, Self::Many(many) if many.len() > 1)
    }
}

#[cfg(test)]
mod tests;
