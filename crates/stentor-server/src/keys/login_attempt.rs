//! The secrets of one login at an identity provider: state, nonce and code verifier.
//!
//! The browser keeps a random number and an expiry under a MAC; the secrets are derived from them, so that no server has to keep them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use stentor_core::time::Timestamp;
use subtle::ConstantTimeEq;

use super::Pepper;

const PREFIX: &str = "lgn_";
const PURPOSE: &str = "stentor 2026 logins at the identity provider";
const STATE_PURPOSE: &str = "stentor 2026 states of logins";
const NONCE_PURPOSE: &str = "stentor 2026 nonces of logins";
const VERIFIER_PURPOSE: &str = "stentor 2026 code verifiers of logins";
const CLAIMS_BYTES: usize = 32 + 8;

/// The secrets of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginAttempt {
    /// The text that the browser brings back from the identity provider.
    pub state: String,
    /// The text that the identity provider puts into the ID token.
    pub nonce: String,
    /// The secret that turns the code into tokens (RFC 7636).
    pub verifier: String,
    /// The time of expiry.
    pub expires_at: Timestamp,
}

impl Pepper {
    /// Begins a login; returns its secrets and the token that the browser keeps.
    #[must_use]
    pub fn begin_login(&self, expires_at: Timestamp) -> (LoginAttempt, String) {
        let mut claims = [0; CLAIMS_BYTES];
        let (seed, expiry) = claims.split_at_mut(32);
        seed.copy_from_slice(&rand::random::<[u8; 32]>());
        expiry.copy_from_slice(&expires_at.as_millis().to_be_bytes());
        let bytes = [claims.as_slice(), &self.code_for(PURPOSE, &claims)].concat();
        (self.attempt(&claims, expires_at), format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Returns the secrets of a login that this installation began; does not check its expiry.
    #[must_use]
    pub fn login_attempt(&self, token: &str) -> Option<LoginAttempt> {
        let bytes = URL_SAFE_NO_PAD.decode(token.strip_prefix(PREFIX)?).ok()?;
        let (claims, code) = bytes.split_first_chunk::<CLAIMS_BYTES>()?;
        let is_ours: bool = self.code_for(PURPOSE, claims).as_slice().ct_eq(code).into();
        let expiry = claims.last_chunk::<8>().filter(|_| is_ours)?;
        Some(self.attempt(claims, Timestamp::from_millis(i64::from_be_bytes(*expiry))))
    }

    fn attempt(&self, claims: &[u8; CLAIMS_BYTES], expires_at: Timestamp) -> LoginAttempt {
        let secret = |purpose: &str| URL_SAFE_NO_PAD.encode(self.code_for(purpose, claims));
        let (state, nonce) = (secret(STATE_PURPOSE), secret(NONCE_PURPOSE));
        LoginAttempt { state, nonce, verifier: secret(VERIFIER_PURPOSE), expires_at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_goes_on_where_it_began_and_nowhere_else_and_with_secrets_of_its_own() {
        let (here, there) = (Pepper([1; 32]), Pepper([2; 32]));
        let (attempt, token) = here.begin_login(Timestamp::from_millis(1_700_000_000_123));
        assert_eq!((here.login_attempt(&token), there.login_attempt(&token)), (Some(attempt.clone()), None));
        let (other, _) = here.begin_login(attempt.expires_at);
        let all = [&attempt, &other].map(|one| [one.state.clone(), one.nonce.clone(), one.verifier.clone()]);
        let all: std::collections::BTreeSet<_> = all.into_iter().flatten().collect();
        assert_eq!(all.len(), 6);
        assert!(all.iter().all(|secret| secret.len() == 43), "as RFC 7636 wants a code verifier");
        assert_eq!(here.login_attempt(&token[..token.len() - 4]), None);
        assert_eq!(here.login_attempt(""), None);
    }
}
