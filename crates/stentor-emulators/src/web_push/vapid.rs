//! The identity of a sender (RFC 8292): a JWT signed with ES256, and the public key that verifies it.

use super::keys::POINT_BYTES;
use super::policy::{BAD_AUDIENCE, BAD_EXPIRATION, BAD_JWT, BAD_SIGNATURE, BAD_SUBJECT, UNAUTHORIZED};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderValue;
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

const SCHEME: &str = "vapid";
const ALGORITHM: &str = "ES256";
const MAX_LIFE_S: f64 = 24.0 * 60.0 * 60.0;
const MAX_REMEMBERED_TOKENS: usize = 1000;

#[derive(Deserialize)]
struct PresentedHeader {
    alg: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PresentedClaims {
    aud: Value,
    exp: Value,
    sub: Value,
}

/// A sender whose signature is valid. Its audience and its time are checked with each request.
pub(super) struct VapidSender {
    /// The public key, in uncompressed form.
    pub(super) key: Vec<u8>,
    audiences: Vec<String>,
    expires_s: f64,
}

/// The origins for which a request may be meant.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestOrigin<'a> {
    pub(super) scheme: &'a str,
    /// The authority to which the request was sent.
    pub(super) authority: &'a str,
    /// An origin that is accepted besides.
    pub(super) other: Option<&'a str>,
}

/// Verifies tokens, each of them once.
#[derive(Default)]
pub(super) struct VapidVerifier {
    remembered: Mutex<HashMap<Vec<u8>, Arc<VapidSender>>>,
}

/// The token that a connection used last.
#[derive(Default)]
pub(super) struct VapidSession(Option<(HeaderValue, Arc<VapidSender>)>);

impl VapidVerifier {
    /// Checks the `authorization` header of a request; the error is the reason.
    pub(super) fn check(
        &self,
        session: &mut VapidSession,
        header: &HeaderValue,
        origin: RequestOrigin<'_>,
    ) -> Result<Arc<VapidSender>, &'static str> {
        // The same header again is the rule: its signature is not verified for each request.
        let sender = match &session.0 {
            Some((current, sender)) if current == header => Arc::clone(sender),
            _ => self.verify(header)?,
        };
        sender.check(origin, now_s())?;
        if session.0.as_ref().is_none_or(|(current, _)| current != header) {
            session.0 = Some((header.clone(), Arc::clone(&sender)));
        }
        Ok(sender)
    }

    fn verify(&self, header: &HeaderValue) -> Result<Arc<VapidSender>, &'static str> {
        // The lock is held while a signature is verified: of many connections that begin with one token, one verifies it.
        let mut remembered = self.remembered.lock();
        if let Some(sender) = remembered.get(header.as_bytes()) {
            return Ok(Arc::clone(sender));
        }
        let sender = Arc::new(VapidSender::read(header)?);
        // A sender has one token for hours: clearing the cache now and then is cheaper than tracking the oldest token.
        if remembered.len() >= MAX_REMEMBERED_TOKENS {
            remembered.clear();
        }
        remembered.insert(header.as_bytes().to_vec(), Arc::clone(&sender));
        Ok(sender)
    }
}

impl VapidSender {
    /// Reads a header and verifies its signature; the error is the reason.
    fn read(header: &HeaderValue) -> Result<Self, &'static str> {
        let text = header.to_str().map_err(|_| UNAUTHORIZED)?;
        let (scheme, parameters) = text.split_once(' ').ok_or(UNAUTHORIZED)?;
        if !scheme.eq_ignore_ascii_case(SCHEME) {
            return Err(UNAUTHORIZED);
        }
        let token = parameter(parameters, "t").ok_or(BAD_JWT)?;
        let key = parameter(parameters, "k").and_then(|key| URL_SAFE_NO_PAD.decode(key).ok());
        let key = key.filter(|key| key.len() == POINT_BYTES).ok_or(BAD_JWT)?;
        let claims = read_token(token, &key)?;
        let expires_s = claims.exp.as_f64().ok_or(BAD_EXPIRATION)?;
        if !is_contact(&claims.sub) {
            return Err(BAD_SUBJECT);
        }
        Ok(Self { key, audiences: audiences(claims.aud), expires_s })
    }

    fn check(&self, origin: RequestOrigin<'_>, now_s: f64) -> Result<(), &'static str> {
        if !self.audiences.iter().any(|audience| origin.is_named(audience)) {
            return Err(BAD_AUDIENCE);
        }
        let in_time = self.expires_s > now_s && self.expires_s <= now_s + MAX_LIFE_S;
        if in_time { Ok(()) } else { Err(BAD_EXPIRATION) }
    }
}

impl RequestOrigin<'_> {
    /// Returns true if an audience is one of these origins (RFC 6454, section 6.1).
    fn is_named(self, audience: &str) -> bool {
        if self.other.is_some_and(|other| other == audience) {
            return true;
        }
        let default_port = if self.scheme == "https" { ":443" } else { ":80" };
        let authority = self.authority.strip_suffix(default_port).unwrap_or(self.authority);
        let named = audience.strip_prefix(self.scheme).and_then(|rest| rest.strip_prefix("://"));
        named.is_some_and(|named| !named.is_empty() && named.eq_ignore_ascii_case(authority))
    }
}

/// Returns a parameter of the scheme, with or without quotes.
fn parameter<'a>(parameters: &'a str, name: &str) -> Option<&'a str> {
    parameters.split(',').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        let value = value.trim();
        let bare = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
        key.trim().eq_ignore_ascii_case(name).then_some(bare)
    })
}

/// Verifies a JWT and returns its claims; the error is the reason.
fn read_token(token: &str, key: &[u8]) -> Result<PresentedClaims, &'static str> {
    let (signed, signature) = token.rsplit_once('.').ok_or(BAD_JWT)?;
    let (header, claims) = signed.split_once('.').ok_or(BAD_JWT)?;
    let header: PresentedHeader = part(header).ok_or(BAD_JWT)?;
    // Any other algorithm, `none` with it, is refused before the key is used (RFC 8725, section 3.1).
    if header.alg != ALGORITHM {
        return Err(BAD_JWT);
    }
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| BAD_JWT)?;
    let verifier = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key);
    verifier.verify(signed.as_bytes(), &signature).map_err(|_| BAD_SIGNATURE)?;
    part(claims).ok_or(BAD_JWT)
}

/// Decodes one part of a JWT.
fn part<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}

/// Returns true if the subject is missing or is an address of a contact.
fn is_contact(subject: &Value) -> bool {
    let prefixed = |text: &str| {
        ["mailto:", "https:"].iter().any(|scheme| text.len() > scheme.len() && text.starts_with(scheme))
    };
    subject.is_null() || subject.as_str().is_some_and(prefixed)
}

/// Lists the audiences of a token, which may be one text or several.
fn audiences(claim: Value) -> Vec<String> {
    match claim {
        Value::String(audience) => vec![audience],
        Value::Array(list) => {
            list.into_iter().filter_map(|audience| audience.as_str().map(ToOwned::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}

fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
