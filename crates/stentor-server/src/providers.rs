//! The push services as this server uses them: one place that knows how adapters are built and asked.

use std::sync::Arc;

use stentor_core::app::Credential;
use stentor_core::device::ProviderKind;
use stentor_core::error::Invalid;
use stentor_core::message::{Message, MessageSpec};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::provider::{CredentialError, Provider};
use stentor_providers::{Limits, Setup};

use crate::pipeline::ProviderFactory;

/// Builds adapters from credentials.
pub(crate) struct Adapters(Setup);

impl Adapters {
    /// Takes what adapters need from their surroundings.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self(Setup { clock, limits: Limits::default() })
    }
}

impl ProviderFactory for Adapters {
    fn build(&self, credential: &Credential) -> Result<Arc<dyn Provider>, Invalid> {
        stentor_providers::open(credential.provider, &credential.secret, &self.0)
            .map_err(|CredentialError::Invalid(invalid)| invalid)
    }
}

/// Checks a message against a push service's limits.
pub(crate) fn check(provider: ProviderKind, spec: &MessageSpec) -> Result<(), Invalid> {
    stentor_providers::check(provider, spec)
}

/// Tells how many bytes a message has at a push service, its token apart.
pub(crate) fn payload_bytes(provider: ProviderKind, message: &Message) -> u64 {
    let bytes = match provider {
        ProviderKind::Fcm => {
            stentor_providers::fcm::payload::Body::new(message, message.due_at).with_token("").len()
        }
        ProviderKind::Apns => stentor_providers::apns::payload::Push::new(message, "").body.len(),
        ProviderKind::Null => 0,
    };
    bytes as u64
}

/// Checks that a credential's JSON can be used; connects to nothing.
pub(crate) fn check_credential(credential: &Credential, clock: Arc<dyn Clock>) -> Result<(), Invalid> {
    Adapters::new(clock).build(credential).map(|_| ())
}
