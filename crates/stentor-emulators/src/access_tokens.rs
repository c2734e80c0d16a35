//! Access tokens that the token endpoints of emulators give out.
//!
//! An access token carries its expiry, its owner and a signature of this emulator, so that it outlives a restart with the same seed and
//! needs no table.

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderValue;
use std::time::{SystemTime, UNIX_EPOCH};

/// Issues access tokens and recognizes them.
pub(crate) struct AccessTokens {
    prefix: &'static str,
    key: hmac::Key,
}

/// A token of this emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IssuedToken {
    /// A number that stands for the account that it was given to.
    pub(crate) owner: u64,
    expires_s: u64,
}

/// The access token that a connection used last, so that it is verified once.
#[derive(Default)]
pub(crate) struct BearerSession(Option<(HeaderValue, IssuedToken)>);

impl AccessTokens {
    /// Prepares for tokens that begin with a vendor's prefix.
    pub(crate) fn new(prefix: &'static str, seed: u64) -> Self {
        Self { prefix, key: hmac::Key::new(hmac::HMAC_SHA256, &seed.to_le_bytes()) }
    }

    /// Issues a token for some seconds.
    pub(crate) fn issue(&self, owner: u64, life_s: u64) -> String {
        let token = IssuedToken { owner, expires_s: now_s() + life_s };
        let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&self.key, &token.signed()));
        format!("{}.{}.{owner}.{signature}", self.prefix, token.expires_s)
    }

    /// Returns the token in a request's header if it is one of ours, expired or not.
    pub(crate) fn find(
        &self,
        session: &mut BearerSession,
        header: Option<&HeaderValue>,
    ) -> Option<IssuedToken> {
        let header = header?;
        // The same header again is the rule: its signature is verified once for a connection.
        if let Some((current, token)) = &session.0
            && current == header
        {
            return Some(*token);
        }
        let token = self.recognize(header)?;
        session.0 = Some((header.clone(), token));
        Some(token)
    }

    fn recognize(&self, header: &HeaderValue) -> Option<IssuedToken> {
        let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
        let token = scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())?;
        let (expires, rest) = token.strip_prefix(self.prefix)?.strip_prefix('.')?.split_once('.')?;
        let (owner, signature) = rest.split_once('.')?;
        let token = IssuedToken { owner: owner.parse().ok()?, expires_s: expires.parse().ok()? };
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        hmac::verify(&self.key, &token.signed(), &signature).ok()?;
        Some(token)
    }
}

impl IssuedToken {
    /// Returns true if it has expired.
    pub(crate) fn has_expired(self) -> bool {
        self.expires_s <= now_s()
    }

    fn signed(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.expires_s.to_le_bytes());
        bytes[8..].copy_from_slice(&self.owner.to_le_bytes());
        bytes
    }
}

pub(crate) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
