//! A program with registrations: its android id, and the security token that authenticates it.

use std::fmt;

use rand::Rng;
use secrecy::ExposeSecret;
use subtle::ConstantTimeEq;

use crate::identity::GatewayKey;

/// The android id of a program: 63 bits, so that it is a positive number to every client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct McsAgent(u64);

impl McsAgent {
    /// Generates an android id.
    #[must_use]
    pub fn draw() -> Self {
        Self((rand::rng().next_u64() >> 1).max(1))
    }

    /// Accepts an android id; `None` if it is out of range.
    #[must_use]
    pub const fn of(android_id: u64) -> Option<Self> {
        if android_id == 0 || android_id > i64::MAX.unsigned_abs() { None } else { Some(Self(android_id)) }
    }

    /// Parses an android id in decimal.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::of(text.parse().ok()?)
    }

    /// Returns the android id.
    #[must_use]
    pub const fn android_id(self) -> u64 {
        self.0
    }

    /// Returns the security token of this android id. It is derived from the installation's key and not stored.
    #[must_use]
    pub fn security_token(self, key: &GatewayKey) -> u64 {
        // No device token begins like this, so no derived value fits both.
        let secret = key.secret(&format!("mcs-agent:{}", self.0));
        let hash = blake3::hash(secret.expose_secret().as_bytes());
        let (first, _) = hash.as_bytes().split_first_chunk().unwrap_or((&[0; 8], &[]));
        (u64::from_le_bytes(*first) >> 1).max(1)
    }

    /// Returns true if a security token belongs to this android id, in constant time.
    #[must_use]
    pub fn fits(self, security_token: u64, key: &GatewayKey) -> bool {
        self.security_token(key).to_le_bytes().ct_eq(&security_token.to_le_bytes()).into()
    }

    /// Parses `AidLogin {android id}:{security token}`, and returns the program if the token is valid.
    #[must_use]
    pub fn authorized(header: &str, key: &GatewayKey) -> Option<Self> {
        let (android_id, security_token) = header.trim().strip_prefix("AidLogin ")?.split_once(':')?;
        let agent = Self::parse(android_id.trim())?;
        agent.fits(security_token.trim().parse().ok()?, key).then_some(agent)
    }
}

impl fmt::Display for McsAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "android-{:x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_security_token_fits_its_android_id_and_key_alone() {
        let (key, other) = (GatewayKey::new([1; 32]), GatewayKey::new([2; 32]));
        let agent = McsAgent::draw();
        let token = agent.security_token(&key);
        assert!(agent.fits(token, &key));
        assert!(!agent.fits(token ^ 1, &key) && !agent.fits(token, &other));
        assert!(!McsAgent(agent.0 ^ 1).fits(token, &key));
        let header = format!("AidLogin {}:{token}", agent.android_id());
        assert_eq!(McsAgent::authorized(&header, &key), Some(agent));
    }

    #[test]
    fn what_is_no_login_is_nobodys() {
        let key = GatewayKey::new([1; 32]);
        for header in
            ["", "AidLogin", "AidLogin 1:2", "AidLogin 0:0", "AidLogin -1:1", "Bearer 1:2", "AidLogin 1"]
        {
            assert_eq!(McsAgent::authorized(header, &key), None, "{header}");
        }
        assert_eq!(McsAgent::parse("9223372036854775808"), None);
    }
}
