//! Encryption of Web Push (RFC 8291): a sender seals a message with the keys of a device, and only the device opens it.

mod derivation;
mod opening;
mod sealing;
mod vapid_key;

pub use derivation::{SALT_BYTES, SealingSecret};
pub use opening::{OpeningError, PushKeyPair};
pub use sealing::{PushKeys, SEALED_OVERHEAD_BYTES, SealingError, seal};
pub use vapid_key::VapidKey;
