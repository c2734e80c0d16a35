//! The token endpoint (RFC 7523), and the check of the access tokens it gives out.

use crate::access_tokens::{AccessTokens, BearerSession, now_s};
use crate::error::EmulatorError;
use http::HeaderValue;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_PREFIX: &str = "ya29.stentor-emulator";
const MAX_ASSERTION_LIFE_S: u64 = 60 * 60;
const MAX_CLOCK_SKEW_S: u64 = 5 * 60;

/// Authentication of senders and the issuing of access tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FcmAuth {
    /// Requires an access token of this emulator for sending.
    pub required: bool,
    /// The service accounts that exist; when empty, any well-formed assertion is taken unverified.
    pub accounts: Vec<ServiceAccount>,
    /// The lifetime of an access token, in seconds.
    pub token_life_s: u64,
    /// Accepted audiences of assertions, besides any URL whose path is a token endpoint of this emulator.
    pub audiences: Vec<String>,
}

impl Default for FcmAuth {
    fn default() -> Self {
        Self { required: true, accounts: Vec::new(), token_life_s: 3599, audiences: Vec::new() }
    }
}

/// A service account and its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceAccount {
    /// Its address (`iss`).
    pub client_email: String,
    /// Its public key as PEM (SubjectPublicKeyInfo, RSA).
    pub public_key_pem: String,
}

#[derive(Deserialize)]
struct PresentedAssertion {
    iss: String,
    aud: String,
    iat: u64,
    exp: u64,
}

#[derive(Serialize)]
struct GrantReply {
    access_token: String,
    expires_in: u64,
    token_type: &'static str,
}

/// A refused grant in the format of RFC 6749.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct GrantDenial {
    error: &'static str,
    error_description: String,
}

/// Issues access tokens and recognizes them.
pub(super) struct TokenIssuer {
    auth: FcmAuth,
    accounts: HashMap<String, DecodingKey>,
    tokens: AccessTokens,
}

impl TokenIssuer {
    pub(super) fn new(auth: FcmAuth, seed: u64) -> Result<Self, EmulatorError> {
        let read = |account: &ServiceAccount| {
            DecodingKey::from_rsa_pem(account.public_key_pem.as_bytes())
                .map(|key| (account.client_email.clone(), key))
                .map_err(|error| EmulatorError::PublicKey {
                    owner: account.client_email.clone(),
                    reason: error.to_string(),
                })
        };
        let accounts = auth.accounts.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { auth, accounts, tokens: AccessTokens::new(TOKEN_PREFIX, seed) })
    }

    /// Answers a token request made with this form at this path; the body is JSON either way.
    pub(super) fn grant(&self, form: &[u8], path: &str) -> Result<Vec<u8>, GrantDenial> {
        let form = parse_form(form);
        let field = |name: &str| form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        if field("grant_type") != Some(GRANT_TYPE) {
            return Err(denied("unsupported_grant_type", "the grant type must be jwt-bearer"));
        }
        let assertion = field("assertion").ok_or_else(|| denied("invalid_request", "no assertion"))?;
        let claims = self.verify(assertion)?;
        self.check_claims(&claims, path, now_s())?;
        let granted = GrantReply {
            // Any project may be sent for with it, so it needs no owner.
            access_token: self.tokens.issue(0, self.auth.token_life_s),
            expires_in: self.auth.token_life_s,
            token_type: "Bearer",
        };
        Ok(serde_json::json!(granted).to_string().into_bytes())
    }

    fn verify(&self, assertion: &str) -> Result<PresentedAssertion, GrantDenial> {
        let invalid = |_| denied("invalid_grant", "Invalid JWT Signature.");
        let header = jsonwebtoken::decode_header(assertion).map_err(invalid)?;
        // The algorithm is fixed, and never the token's choice (RFC 8725, section 3.1).
        if header.alg != Algorithm::RS256 {
            return Err(denied("invalid_grant", "the assertion must be signed with RS256"));
        }
        // Read unverified only to find the account that must have signed it.
        let unverified = jsonwebtoken::dangerous::insecure_decode::<PresentedAssertion>(assertion)
            .map_err(invalid)?
            .claims;
        if self.accounts.is_empty() {
            return Ok(unverified);
        }
        let key = self.accounts.get(&unverified.iss);
        let key = key.ok_or_else(|| denied("invalid_grant", "Invalid grant: account not found"))?;
        let mut validation = Validation::new(Algorithm::RS256);
        // Times and audience are checked apart, with Google's limits.
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_aud = false;
        Ok(jsonwebtoken::decode::<PresentedAssertion>(assertion, key, &validation).map_err(invalid)?.claims)
    }

    fn check_claims(&self, claims: &PresentedAssertion, path: &str, now_s: u64) -> Result<(), GrantDenial> {
        let in_time = claims.exp > now_s
            && claims.iat <= now_s + MAX_CLOCK_SKEW_S
            && claims.exp.saturating_sub(claims.iat) <= MAX_ASSERTION_LIFE_S;
        if !in_time {
            return Err(denied("invalid_grant", "the assertion must be short-lived and in its time"));
        }
        // The host is not compared: senders may reach this emulator under any name.
        let aud_path =
            claims.aud.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..]));
        if aud_path == Some(path) || self.auth.audiences.contains(&claims.aud) {
            return Ok(());
        }
        Err(denied("invalid_grant", "the audience is not this token endpoint"))
    }

    /// Returns true if a request may send.
    pub(super) fn admits(&self, session: &mut BearerSession, header: Option<&HeaderValue>) -> bool {
        !self.auth.required || self.tokens.find(session, header).is_some_and(|token| !token.has_expired())
    }
}

fn denied(error: &'static str, description: &str) -> GrantDenial {
    GrantDenial { error, error_description: description.to_owned() }
}

/// Parses a form. Pairs that cannot be decoded are left out.
pub(crate) fn parse_form(form: &[u8]) -> Vec<(String, String)> {
    form.split(|byte| *byte == b'&')
        .filter_map(|pair| {
            let at = pair.iter().position(|byte| *byte == b'=')?;
            Some((percent_decode(&pair[..at], true)?, percent_decode(&pair[at + 1..], true)?))
        })
        .collect()
}

/// Decodes `%41` and, in forms, `+`; `None` when the result is not UTF-8 or an escape is broken.
pub(crate) fn percent_decode(text: &[u8], plus_is_space: bool) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        decoded.push(match byte {
            b'+' if plus_is_space => b' ',
            b'%' => {
                let (digits, after) = rest.split_first_chunk::<2>()?;
                rest = after;
                // `from_str_radix` would take a sign for a digit.
                let hex = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
                u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?
            }
            other => *other,
        });
    }
    String::from_utf8(decoded).ok()
}
