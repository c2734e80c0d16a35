//! Session tokens of the console: key, session and expiry, authenticated by a MAC that only this installation can compute.
//!
//! They need no table, so every server of an installation knows them, also after a restart. A token names its key by the key's hash: once
//! the key is gone, the hash finds none.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use stentor_core::time::Timestamp;
use subtle::ConstantTimeEq;

use super::{KeyHash, Pepper};

const PREFIX: &str = "ses_";
const PURPOSE: &str = "stentor 2026 sessions of the console";
const CSRF_PURPOSE: &str = "stentor 2026 csrf tokens of the console";
const HASH_BYTES: usize = 32;
const CLAIMS_BYTES: usize = HASH_BYTES + 8 + 8;

/// The content of a session token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionGrant {
    /// Hash of the key with which the session was opened.
    pub key: KeyHash,
    /// Random number of the session.
    pub session: u64,
    /// The time of expiry.
    pub expires_at: Timestamp,
}

impl Pepper {
    /// Creates a session token.
    #[must_use]
    pub fn session_token(&self, grant: &SessionGrant) -> String {
        let claims = grant.bytes();
        let bytes = [claims.as_slice(), &self.code_for(PURPOSE, &claims)].concat();
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Verifies and parses a session token of this installation; does not check its expiry.
    #[must_use]
    pub fn session_grant(&self, text: &str) -> Option<SessionGrant> {
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX)?).ok()?;
        let (claims, code) = bytes.split_first_chunk::<CLAIMS_BYTES>()?;
        let is_ours: bool = self.code_for(PURPOSE, claims).as_slice().ct_eq(code).into();
        if is_ours { SessionGrant::of(claims) } else { None }
    }

    /// Returns the text that a page sends with each change, to prove that it can read what this server answers.
    #[must_use]
    pub fn csrf_token(&self, grant: &SessionGrant) -> String {
        URL_SAFE_NO_PAD.encode(self.code_for(CSRF_PURPOSE, &grant.bytes()))
    }

    /// Compares in constant time.
    #[must_use]
    pub fn is_csrf_token(&self, grant: &SessionGrant, text: &str) -> bool {
        self.csrf_token(grant).as_bytes().ct_eq(text.as_bytes()).into()
    }

    fn code_for(&self, purpose: &str, claims: &[u8; CLAIMS_BYTES]) -> [u8; 32] {
        *blake3::keyed_hash(&blake3::derive_key(purpose, &self.0), claims).as_bytes()
    }
}

impl SessionGrant {
    fn bytes(&self) -> [u8; CLAIMS_BYTES] {
        let mut bytes = [0; CLAIMS_BYTES];
        let (key, numbers) = bytes.split_at_mut(HASH_BYTES);
        let (session, expiry) = numbers.split_at_mut(8);
        key.copy_from_slice(&self.key);
        session.copy_from_slice(&self.session.to_be_bytes());
        expiry.copy_from_slice(&self.expires_at.as_millis().to_be_bytes());
        bytes
    }

    fn of(bytes: &[u8; CLAIMS_BYTES]) -> Option<Self> {
        let (key, numbers) = bytes.split_first_chunk::<HASH_BYTES>()?;
        let (session, expiry) = numbers.split_first_chunk::<8>()?;
        let expires_at = Timestamp::from_millis(i64::from_be_bytes(*expiry.first_chunk()?));
        Some(Self { key: *key, session: u64::from_be_bytes(*session), expires_at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRANT: SessionGrant =
        SessionGrant { key: [7; 32], session: 77, expires_at: Timestamp::from_millis(1_700_000_000_123) };

    #[test]
    fn a_session_token_is_read_where_it_was_written_and_nowhere_else() {
        let (here, there) = (Pepper([1; 32]), Pepper([2; 32]));
        let token = here.session_token(&GRANT);
        assert_eq!((here.session_grant(&token), there.session_grant(&token)), (Some(GRANT), None));
        for at in PREFIX.len()..token.len() {
            let other = if token.as_bytes()[at] == b'A' { 'B' } else { 'A' };
            let changed = format!("{}{other}{}", &token[..at], &token[at + 1..]);
            assert_eq!(here.session_grant(&changed), None, "letter {at}");
        }
        assert_eq!(here.session_grant(&token[..token.len() - 4]), None);
    }

    #[test]
    fn the_csrf_token_of_one_session_is_none_of_another_and_is_no_session_token() {
        let here = Pepper([1; 32]);
        let token = here.csrf_token(&GRANT);
        assert!(here.is_csrf_token(&GRANT, &token));
        assert!(!here.is_csrf_token(&SessionGrant { session: 78, ..GRANT }, &token));
        assert!(!here.is_csrf_token(&GRANT, ""));
        assert_eq!(here.session_grant(&token), None);
    }
}
