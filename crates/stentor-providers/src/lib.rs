//! Adapters to the push services, one folder each with the same rooms: `credential`, `auth`, `payload`, `errors`.
//!
//! The words of a vendor and the statuses of HTTP stay here: outside there are only
//! [`Outcome`](stentor_core::outcome::Outcome)s. No adapter tries again what a push service may have processed.
#![forbid(unsafe_code)]

pub mod apns;
mod credential;
pub mod fcm;
mod json;
pub mod null;
mod picked;
mod replies;
pub mod retry_after;

use std::sync::Arc;

use stentor_core::device::ProviderKind;
use stentor_core::error::Invalid;
use stentor_core::message::MessageSpec;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::provider::{CredentialError, Provider};
pub use stentor_http2::Limits;

/// What an adapter needs from its surroundings.
#[derive(Clone)]
pub struct Setup {
    /// Tells the time, for keys that expire.
    pub clock: Arc<dyn Clock>,
    /// Bounds of its connections.
    pub limits: Limits,
}

/// Builds the adapter for a credential's JSON; connects to nothing yet.
pub fn open(kind: ProviderKind, secret: &str, setup: &Setup) -> Result<Arc<dyn Provider>, CredentialError> {
    Ok(match kind {
        ProviderKind::Fcm => Arc::new(fcm::Fcm::open(secret, setup)?),
        ProviderKind::Apns => Arc::new(apns::Apns::open(secret, setup)?),
        ProviderKind::Null => Arc::new(null::Null::open(secret)?),
    })
}

/// Gives the messages per minute that a push service allows one credential unless it says otherwise; `None` for no such rule.
#[must_use]
pub const fn usual_quota(kind: ProviderKind) -> Option<u32> {
    match kind {
        ProviderKind::Fcm => Some(fcm::QUOTA_PER_MINUTE),
        ProviderKind::Apns | ProviderKind::Null => None,
    }
}

/// Checks a message against the documented limits of a push service; the error names the field.
pub fn check(kind: ProviderKind, spec: &MessageSpec) -> Result<(), Invalid> {
    match kind {
        ProviderKind::Fcm => fcm::payload::check(spec),
        ProviderKind::Apns => apns::payload::check(spec),
        ProviderKind::Null => Ok(()),
    }
}
