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
mod outbound;
mod picked;
mod replies;
pub mod retry_after;

use std::sync::Arc;

use stentor_core::device::ProviderKind;
use stentor_core::error::Invalid;
use stentor_core::message::MessageSpec;
use stentor_core::outbound::{OutboundPolicy, Refused};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::provider::{CredentialError, Provider};
pub use stentor_http2::Limits;

pub use self::outbound::Outbound;

/// What an adapter needs from its surroundings.
#[derive(Clone)]
pub struct Setup {
    /// Tells the time, for keys that expire.
    pub clock: Arc<dyn Clock>,
    /// Bounds of its connections.
    pub limits: Limits,
    /// Where it may connect.
    pub outbound: Outbound,
}

/// A host in a credential that may not be connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedHost {
    /// Path of the field that names it.
    pub field: String,
    /// Why the address is refused.
    pub refused: Refused,
}

/// Builds the adapter for a credential's JSON; connects to nothing yet.
pub fn open(kind: ProviderKind, secret: &str, setup: &Setup) -> Result<Arc<dyn Provider>, CredentialError> {
    Ok(match kind {
        ProviderKind::Fcm => Arc::new(fcm::Fcm::open(secret, setup)?),
        ProviderKind::Apns => Arc::new(apns::Apns::open(secret, setup)?),
        ProviderKind::Null => Arc::new(null::Null::open(secret)?),
    })
}

/// Finds a host in a credential that may not be connected to, as far as that shows without looking names up; returns an
/// error when the credential itself is wrong.
pub fn refused_host(
    kind: ProviderKind,
    secret: &str,
    policy: &OutboundPolicy,
) -> Result<Option<RefusedHost>, CredentialError> {
    let hosts = match kind {
        ProviderKind::Fcm => fcm::credential::FcmCredential::parse(secret)?.hosts(),
        ProviderKind::Apns => apns::credential::ApnsCredential::parse(secret)?.hosts(),
        ProviderKind::Null => Vec::new(),
    };
    let refused = hosts.into_iter().find_map(|(field, host)| {
        let refused = outbound::check_host(policy, &host).err()?;
        Some(RefusedHost { field, refused })
    });
    Ok(refused)
}

/// Returns the messages per minute that a push service allows one credential unless it says otherwise; `None` for no such rule.
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
