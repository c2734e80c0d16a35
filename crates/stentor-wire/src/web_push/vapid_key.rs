//! Public keys of Web Push.

use base64::Engine;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};

/// Bytes of an uncompressed point of P-256 (X9.62).
const KEY_BYTES: usize = 65;
/// First byte of such a point.
const UNCOMPRESSED: u8 = 4;

/// The public key of a sender or of a device, a point of P-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VapidKey([u8; KEY_BYTES]);

impl VapidKey {
    /// Accepts the 65 bytes of an uncompressed point; `None` for any other form.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; KEY_BYTES] = bytes.try_into().ok()?;
        (bytes[0] == UNCOMPRESSED).then_some(Self(bytes))
    }

    /// Decodes base64url, with padding or without: browsers write it, senders do not.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        if text.len() > 2 * KEY_BYTES {
            return None;
        }
        let bytes = if text.ends_with('=') { URL_SAFE.decode(text) } else { URL_SAFE_NO_PAD.decode(text) };
        Self::of_bytes(&bytes.ok()?)
    }

    /// Returns the key in base64url without padding.
    #[must_use]
    pub fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// Returns the bytes of the point.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}
