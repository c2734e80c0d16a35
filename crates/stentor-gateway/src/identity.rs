//! The identity of a device: its token, which is its address, and its secret, which authenticates it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::Rng;
use secrecy::{ExposeSecret, SecretString};
use stentor_core::device::PushToken;
use stentor_core::id::{AppId, DeviceId};
use subtle::ConstantTimeEq;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 24;
/// Separator between the app and the random part of a token.
const SEPARATOR: char = '.';

/// An authenticated device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeviceIdentity {
    /// Its app.
    pub app: AppId,
    /// Its id.
    pub device: DeviceId,
}

/// The credentials of a device, issued at its registration.
#[derive(Debug, Clone)]
pub struct DeviceCredentials {
    /// Its address. Every sender of the app can send to it.
    pub token: PushToken,
    /// Its proof of identity, known only to the device.
    pub secret: SecretString,
}

/// The installation's key from which the secrets of devices are derived. The secrets are not stored, so none can be stolen from the store.
/// A device that is removed or has a new token can no longer use its old secret.
#[derive(Clone)]
pub struct GatewayKey([u8; 32]);

impl GatewayKey {
    /// Creates a key from 32 random bytes, which must be kept for the life of the installation.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Generates a token for a device of an app, with its secret.
    #[must_use]
    pub fn issue(&self, app: AppId) -> DeviceCredentials {
        let mut bytes = [0_u8; TOKEN_BYTES];
        rand::rng().fill_bytes(&mut bytes);
        let text = format!("{app}{SEPARATOR}{}", URL_SAFE_NO_PAD.encode(bytes));
        // Letters, digits, `_`, `-` and `.`, some 50 of them: always a valid token.
        let token = PushToken::new(text).unwrap_or_else(|_| unreachable!("a token of visible letters"));
        let secret = self.secret(token.expose());
        DeviceCredentials { token, secret }
    }

    /// Returns the secret of a token: 43 letters of base64url.
    #[must_use]
    pub fn secret(&self, token: &str) -> SecretString {
        URL_SAFE_NO_PAD.encode(blake3::keyed_hash(&self.0, token.as_bytes()).as_bytes()).into()
    }

    /// Returns true if a secret belongs to a token, in constant time.
    #[must_use]
    pub fn fits(&self, token: &str, secret: &str) -> bool {
        let expected = self.secret(token);
        expected.expose_secret().as_bytes().ct_eq(secret.as_bytes()).into()
    }

    /// Returns a message authentication code of these bytes. Each purpose has its own key, so that a code is valid for one purpose only.
    pub(crate) fn code(&self, purpose: &str, bytes: &[u8]) -> [u8; 32] {
        let key = blake3::keyed_hash(&self.0, purpose.as_bytes());
        *blake3::keyed_hash(key.as_bytes(), bytes).as_bytes()
    }
}

impl fmt::Debug for GatewayKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GatewayKey([redacted])")
    }
}

/// Returns the app named in a token; `None` if the text is no token of the gateway.
#[must_use]
pub(crate) fn app_of(token: &str) -> Option<AppId> {
    let (app, rest) = token.split_once(SEPARATOR)?;
    (!rest.is_empty()).then(|| app.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_app_and_its_secret_fits_it_alone() {
        let key = GatewayKey::new([7; 32]);
        let app = AppId::from_raw(9);
        let (one, other) = (key.issue(app), key.issue(app));
        assert_eq!(app_of(one.token.expose()), Some(app));
        assert!(key.fits(one.token.expose(), one.secret.expose_secret()));
        assert!(!key.fits(other.token.expose(), one.secret.expose_secret()));
        assert!(!GatewayKey::new([8; 32]).fits(one.token.expose(), one.secret.expose_secret()));
        assert!(!key.fits(one.token.expose(), ""));
    }

    #[test]
    fn what_is_no_token_names_no_app() {
        for text in ["", ".", "app_", "x.y", "app_0000000000009", "app_0000000000009."] {
            assert_eq!(app_of(text), None, "{text}");
        }
    }

    #[test]
    fn the_key_never_shows_itself() {
        assert_eq!(format!("{:?}", GatewayKey::new([7; 32])), "GatewayKey([redacted])");
    }
}
