//! The push services as this server uses them: one place that knows how adapters are built and asked.

use std::sync::Arc;

use serde_json::{Map, Value};
use stentor_core::app::Credential;
use stentor_core::device::ProviderKind;
use stentor_core::error::Invalid;
use stentor_core::message::{Message, MessageSpec};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::provider::{CredentialError, Provider};
use stentor_providers::{Limits, Setup};

use crate::pipeline::ProviderFactory;

/// Most connections that a credential may ask for.
const CONNECTIONS_MAX_COUNT: u64 = 1_024;

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
        let (secret, limits) = split(&credential.secret, &self.0.limits)?;
        let setup = Setup { clock: self.0.clock.clone(), limits };
        stentor_providers::open(credential.provider, &secret, &setup)
            .map_err(|CredentialError::Invalid(invalid)| invalid)
    }
}

/// Takes out of a credential's JSON what is ours to obey; the rest is the adapter's.
fn split(secret: &str, usual: &Limits) -> Result<(String, Limits), Invalid> {
    let wrong = |_| Invalid::new("credential", "must be a JSON object");
    let mut fields: Map<String, Value> = serde_json::from_str(secret).map_err(wrong)?;
    let mut limits = usual.clone();
    if let Some(most) = fields.remove("max_connections") {
        let most = most.as_u64().filter(|most| (1..=CONNECTIONS_MAX_COUNT).contains(most));
        let problem = || Invalid::new("max_connections", format!("must be 1 to {CONNECTIONS_MAX_COUNT}"));
        limits.max_connections = most.ok_or_else(problem)? as usize;
    }
    if fields.remove("quota").is_some_and(|quota| quota != "none") {
        return Err(Invalid::new("quota", "must be \"none\": nothing else is in force yet"));
    }
    if let Some(endpoint) = fields.remove("token_endpoint") {
        fields.insert("token_uri".to_owned(), endpoint);
    }
    Ok((Value::Object(fields).to_string(), limits))
}

/// Checks a message against a push service's limits.
pub(crate) fn check(provider: ProviderKind, spec: &MessageSpec) -> Result<(), Invalid> {
    stentor_providers::check(provider, spec)
}

/// Tells how many bytes a message has at a push service, its token apart.
pub(crate) fn payload_bytes(provider: ProviderKind, message: &Message) -> u64 {
    let bytes = match provider {
        ProviderKind::Fcm => {
            let body = stentor_providers::fcm::payload::Body::new(message, message.due_at);
            body.with_token("", |parts| parts.iter().map(|part| part.len()).sum::<usize>())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_fields_are_obeyed_and_not_handed_on() {
        let secret =
            r#"{"service_account":{},"token_endpoint":"http://t","quota":"none","max_connections":3}"#;
        let (rest, limits) = split(secret, &Limits::default()).expect("readable");
        assert_eq!(limits.max_connections, 3);
        assert_eq!(rest, r#"{"service_account":{},"token_uri":"http://t"}"#);
    }

    #[test]
    fn what_would_have_no_effect_is_refused() {
        for (secret, field) in
            [(r#"{"quota":600}"#, "quota"), (r#"{"max_connections":0}"#, "max_connections")]
        {
            assert_eq!(split(secret, &Limits::default()).expect_err("refused").field, field);
        }
    }
}
