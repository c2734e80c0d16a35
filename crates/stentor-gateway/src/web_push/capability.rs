//! Capability URLs (RFC 8030, 8.3). Possession of one is the permission to use it, so it must be unguessable.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use stentor_core::id::{AppId, DeviceId, MessageId};
use stentor_wire::web_push::VapidKey;
use subtle::ConstantTimeEq;

use crate::identity::{DeviceIdentity, GatewayKey};

/// Longest text that is parsed as a capability.
pub const CAPABILITY_MAX_BYTES: usize = 128;
/// Bytes of the code that proves the origin: 128 bits cannot be guessed.
const CODE_BYTES: usize = 16;
/// Bytes of the hash of a key.
const KEY_HASH_BYTES: usize = 16;
/// Purpose of the key for these codes; no device token has this form.
const PURPOSE: &str = "capabilities of web push";

/// The hash of a sender's key, which restricts a subscription to that sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VapidKeyHash([u8; KEY_HASH_BYTES]);

impl VapidKeyHash {
    pub(crate) fn of(key: &VapidKey) -> Self {
        let mut hash = [0; KEY_HASH_BYTES];
        hash.copy_from_slice(&blake3::hash(key.as_bytes()).as_bytes()[..KEY_HASH_BYTES]);
        Self(hash)
    }

    pub(crate) fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }
}

/// The object named by the last part of a URL of the push service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushCapability {
    /// A subscription, for sending messages to its device.
    Subscription(DeviceIdentity, Option<VapidKeyHash>),
    /// A message, which may be withdrawn.
    Message(DeviceIdentity, MessageId),
    /// A receipt, for querying the outcome of the message.
    Receipt(DeviceIdentity, MessageId),
}

impl PushCapability {
    /// Creates the capability of a subscription, with or without a key.
    #[must_use]
    pub fn subscription(identity: DeviceIdentity, key: Option<&VapidKey>) -> Self {
        Self::Subscription(identity, key.map(VapidKeyHash::of))
    }

    /// Returns true if a sender with this key may use it.
    #[must_use]
    pub fn admits(&self, sender: Option<&VapidKey>) -> bool {
        match self {
            Self::Subscription(_, Some(hash)) => sender.is_some_and(|key| VapidKeyHash::of(key) == *hash),
            Self::Subscription(_, None) | Self::Message(..) | Self::Receipt(..) => true,
        }
    }

    /// Formats it as the last part of a URL, at most [`CAPABILITY_MAX_BYTES`] letters of base64url.
    #[must_use]
    pub fn text(&self, key: &GatewayKey) -> String {
        let mut bytes = self.bytes();
        let code = key.code(PURPOSE, &bytes);
        bytes.extend_from_slice(&code[..CODE_BYTES]);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Parses a capability made with this key; `None` for any other text.
    #[must_use]
    pub fn read(text: &str, key: &GatewayKey) -> Option<Self> {
        if text.len() > CAPABILITY_MAX_BYTES {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (named, code) = bytes.split_at_checked(bytes.len().checked_sub(CODE_BYTES)?)?;
        let expected = key.code(PURPOSE, named);
        // Nothing is parsed without a valid code.
        bool::from(expected[..CODE_BYTES].ct_eq(code)).then(|| Self::of_bytes(named))?
    }

    fn bytes(&self) -> Vec<u8> {
        let (kind, identity, rest) = match self {
            Self::Subscription(identity, None) => (0_u8, identity, Vec::new()),
            Self::Subscription(identity, Some(VapidKeyHash(hash))) => (1, identity, hash.to_vec()),
            Self::Message(identity, message) => (2, identity, message.raw().to_be_bytes().to_vec()),
            Self::Receipt(identity, message) => (3, identity, message.raw().to_be_bytes().to_vec()),
        };
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&identity.app.raw().to_be_bytes());
        bytes.extend_from_slice(&identity.device.raw().to_be_bytes());
        bytes.extend(rest);
        bytes
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (app, rest) = rest.split_first_chunk()?;
        let (device, rest) = rest.split_first_chunk()?;
        let app = AppId::from_raw(u64::from_be_bytes(*app));
        let device = DeviceId::from_raw(u64::from_be_bytes(*device));
        let identity = DeviceIdentity { app, device };
        let message = || Some(MessageId::from_raw(u64::from_be_bytes(rest.try_into().ok()?)));
        match kind {
            0 if rest.is_empty() => Some(Self::Subscription(identity, None)),
            1 => Some(Self::Subscription(identity, Some(VapidKeyHash(rest.try_into().ok()?)))),
            2 => Some(Self::Message(identity, message()?)),
            3 => Some(Self::Receipt(identity, message()?)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<PushCapability> {
        let identity = DeviceIdentity { app: AppId::from_raw(7), device: DeviceId::from_raw(9) };
        let message = MessageId::from_raw(1 << 40);
        let key = VapidKey::of_bytes(&[4; 65]).expect("a key");
        vec![
            PushCapability::subscription(identity, None),
            PushCapability::subscription(identity, Some(&key)),
            PushCapability::Message(identity, message),
            PushCapability::Receipt(identity, message),
        ]
    }

    #[test]
    fn what_was_made_is_read_back_and_stays_short() {
        let key = GatewayKey::new([3; 32]);
        for capability in all() {
            let text = capability.text(&key);
            assert!(text.len() <= CAPABILITY_MAX_BYTES, "{}", text.len());
            assert_eq!(PushCapability::read(&text, &key), Some(capability));
        }
    }

    #[test]
    fn no_changed_letter_and_no_other_key_opens_one() {
        let key = GatewayKey::new([3; 32]);
        for capability in all() {
            let text = capability.text(&key);
            assert_eq!(PushCapability::read(&text, &GatewayKey::new([4; 32])), None);
            for place in 0..text.len() {
                let mut changed = text.clone().into_bytes();
                changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
                let changed = String::from_utf8(changed).expect("letters");
                assert_eq!(PushCapability::read(&changed, &key), None, "{changed}");
                assert_eq!(PushCapability::read(&text[..place], &key), None);
            }
        }
    }

    #[test]
    fn a_subscription_with_a_key_admits_only_that_key() {
        let (own, other) = (VapidKey::of_bytes(&[4; 65]), VapidKey::of_bytes(&[&[4][..], &[5; 64]].concat()));
        let [open, bound, ..] = all()[..] else { panic!("four of them") };
        assert!(bound.admits(own.as_ref()));
        assert!(!bound.admits(other.as_ref()) && !bound.admits(None));
        assert!(open.admits(None) && open.admits(other.as_ref()));
    }
}
