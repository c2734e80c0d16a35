//! Access tokens: account and expiry, authenticated by a MAC that only this installation can compute. They need no table.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use stentor_core::id::KeyId;
use stentor_core::time::Timestamp;
use subtle::ConstantTimeEq;

use super::Pepper;

/// The lifetime of an access token.
pub const TOKEN_LIFE: Duration = Duration::from_secs(3_600);
const PREFIX: &str = "sat_";
const PURPOSE: &str = "stentor 2026 access tokens of service accounts";
const CLAIMS_BYTES: usize = 16;
const CODE_BYTES: usize = 32;
/// Letters behind the prefix: claims and code in base64url.
const TOKEN_LETTERS: usize = 64;

/// The content of an access token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenGrant {
    /// The account of the token.
    pub account: KeyId,
    /// The time of expiry.
    pub expires_at: Timestamp,
}

/// Returns true if the text has the form of an access token.
#[must_use]
pub fn looks_like_token(text: &str) -> bool {
    text.strip_prefix(PREFIX).is_some_and(|rest| rest.len() == TOKEN_LETTERS)
}

impl Pepper {
    /// Creates an access token.
    #[must_use]
    pub fn access_token(&self, grant: TokenGrant) -> String {
        let claims = grant.bytes();
        let bytes: Vec<u8> = claims.iter().copied().chain(self.code(&claims)).collect();
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Verifies and parses an access token of this installation; does not check its expiry.
    #[must_use]
    pub fn token_grant(&self, text: &str) -> Option<TokenGrant> {
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX)?).ok()?;
        let (claims, code) = bytes.split_first_chunk::<CLAIMS_BYTES>()?;
        let is_ours: bool = self.code(claims).as_slice().ct_eq(code).into();
        is_ours.then(|| TokenGrant::of(claims))
    }

    fn code(&self, claims: &[u8; CLAIMS_BYTES]) -> [u8; CODE_BYTES] {
        let key = blake3::derive_key(PURPOSE, &self.0);
        *blake3::keyed_hash(&key, claims).as_bytes()
    }
}

impl TokenGrant {
    fn bytes(self) -> [u8; CLAIMS_BYTES] {
        let both =
            u128::from(self.account.raw()) << 64 | u128::from(self.expires_at.as_millis().cast_unsigned());
        both.to_be_bytes()
    }

    fn of(bytes: &[u8; CLAIMS_BYTES]) -> Self {
        let both = u128::from_be_bytes(*bytes);
        let (account, millis) = ((both >> 64) as u64, both as u64);
        Self { account: KeyId::from_raw(account), expires_at: Timestamp::from_millis(millis.cast_signed()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_where_it_was_written_and_nowhere_else() {
        let (here, there) = (Pepper([1; 32]), Pepper([2; 32]));
        let grant = TokenGrant {
            account: KeyId::from_raw(77),
            expires_at: Timestamp::from_millis(1_700_000_000_123),
        };
        let token = here.access_token(grant);
        assert!(looks_like_token(&token));
        assert_eq!((here.token_grant(&token), there.token_grant(&token)), (Some(grant), None));
        for at in PREFIX.len()..token.len() {
            let other = if token.as_bytes()[at] == b'A' { 'B' } else { 'A' };
            let changed = format!("{}{other}{}", &token[..at], &token[at + 1..]);
            assert_eq!(here.token_grant(&changed), None, "letter {at}");
        }
        assert_eq!(here.token_grant(&token[..token.len() - 4]), None);
    }
}
