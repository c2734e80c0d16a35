//! The Web Push protocol between senders and a push service: requests (RFC 8030), authentication (RFC 8292) and encryption (RFC 8291).
//!
//! Without IO and without an HTTP library: a server parses its requests with these types, and writes their refusals.

mod capability;
mod derivation;
mod opening;
mod rates;
mod refusal;
mod request;
mod sealing;
mod vapid;

pub use capability::{CAPABILITY_MAX_BYTES, PushCapability, VapidKeyHash};
pub use opening::{OpeningError, PushKeyPair};
pub use rates::{PushRate, PushRates};
pub use refusal::PushRefusal;
pub use request::{PUSH_BODY_MAX_BYTES, PushDraft, PushHeaders};
pub use sealing::{PushKeys, SealingError, seal};
pub use vapid::{VapidKey, VapidToken, is_origin};

pub(crate) use derivation::{SALT_BYTES, SealingSecret};
