//! Web Push: what its senders ask of a push service (RFC 8030), prove (RFC 8292) and send (RFC 8291).
//!
//! No IO and no HTTP library: a server reads its requests with these, and writes their refusals.

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
