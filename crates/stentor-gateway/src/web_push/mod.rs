//! The Web Push protocol between senders and a push service: requests (RFC 8030) and authentication (RFC 8292).
//!
//! Without IO and without an HTTP library: a server parses its requests with these types, and writes their refusals.

mod capability;
mod rates;
mod refusal;
mod request;
mod vapid;

pub use capability::{CAPABILITY_MAX_BYTES, PushCapability, VapidKeyHash};
pub use rates::{PushRate, PushRates};
pub use refusal::PushRefusal;
pub use request::{PUSH_BODY_MAX_BYTES, PushDraft, PushHeaders};
pub use vapid::{VapidToken, is_origin};
