//! The push services as this server uses them: the single place that builds and calls adapters.

use std::sync::Arc;

use serde_json::{Map, Value};
use stentor_core::app::Credential;
use stentor_core::device::ProviderKind;
use stentor_core::error::Invalid;
use stentor_core::message::{Message, MessageSpec};
use stentor_core::outbound::OutboundPolicy;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::provider::{CredentialError, Provider};
use stentor_providers::schema::{CONNECTIONS_MAX_COUNT, QUOTA_MAX_PER_MINUTE};
use stentor_providers::{Limits, Outbound, RefusedHost, RequestPreview, Setup};
use tokio::runtime::Handle;

use crate::pipeline::ProviderFactory;

/// Builds adapters from credentials.
pub(crate) struct Adapters {
    setup: Setup,
    /// The runtime of their connections; with `None`, the runtime in which they are created.
    home: Option<Handle>,
}

impl Adapters {
    /// Creates the factory from the dependencies of adapters.
    pub(crate) fn new(clock: Arc<dyn Clock>, limits: Limits, outbound: OutboundPolicy) -> Self {
        Self { setup: Setup { clock, limits, outbound: Outbound::new(outbound) }, home: None }
    }

    /// Sets the runtime of the connections.
    pub(crate) fn at_home_on(self, home: Option<Handle>) -> Self {
        Self { home, ..self }
    }
}

impl Adapters {
    fn open(&self, credential: &Credential) -> Result<Arc<dyn Provider>, CredentialError> {
        let ours = split(credential, &self.setup.limits).map_err(CredentialError::Invalid)?;
        let setup = Setup { limits: ours.limits, ..self.setup.clone() };
        let _inside = self.home.as_ref().map(Handle::enter);
        stentor_providers::open(credential.provider, &ours.rest, &setup)
    }
}

impl ProviderFactory for Adapters {
    fn build(&self, credential: &Credential) -> Result<Arc<dyn Provider>, Invalid> {
        self.open(credential).map_err(CredentialError::into_invalid)
    }

    fn quota(&self, credential: &Credential) -> Option<u32> {
        quota(credential)
    }
}

/// Returns the messages per minute that a credential allows; without its own number, the quota of its push service.
pub(crate) fn quota(credential: &Credential) -> Option<u32> {
    split(credential, &Limits::default()).ok()?.quota
}

/// Our own settings of a credential, and the rest of it.
struct Ours {
    rest: String,
    limits: Limits,
    quota: Option<u32>,
}

/// Splits a credential's JSON into our own settings and the adapter's part.
fn split(credential: &Credential, usual: &Limits) -> Result<Ours, Invalid> {
    let wrong = |_| Invalid::new("credential", "must be a JSON object");
    let mut fields: Map<String, Value> = serde_json::from_str(&credential.secret).map_err(wrong)?;
    let mut limits = usual.clone();
    if let Some(most) = fields.remove("max_connections") {
        let most = most.as_u64().filter(|most| (1..=CONNECTIONS_MAX_COUNT).contains(most));
        let problem = || Invalid::new("max_connections", format!("must be 1 to {CONNECTIONS_MAX_COUNT}"));
        limits.max_connections = most.ok_or_else(problem)? as usize;
    }
    let quota = match fields.remove("quota") {
        Some(said) => read_quota(&said)?,
        None => stentor_providers::descriptor(credential.provider).quota_per_minute,
    };
    Ok(Ours { rest: Value::Object(fields).to_string(), limits, quota })
}

fn read_quota(said: &Value) -> Result<Option<u32>, Invalid> {
    let wrong = || {
        Invalid::new("quota", format!("must be \"none\" or 1 to {QUOTA_MAX_PER_MINUTE} messages per minute"))
    };
    match said {
        Value::String(word) if word == "none" => Ok(None),
        Value::Number(number) => {
            let whole = |number: f64| (number.fract() == 0.0 && number >= 0.0).then_some(number as u64);
            let per_minute = number.as_u64().or_else(|| number.as_f64().and_then(whole));
            let per_minute = per_minute.and_then(|number| u32::try_from(number).ok());
            per_minute.filter(|count| (1..=QUOTA_MAX_PER_MINUTE).contains(count)).map(Some).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

/// Checks a message against a push service's limits.
pub(crate) fn check(provider: ProviderKind, spec: &MessageSpec) -> Result<(), Invalid> {
    (stentor_providers::descriptor(provider).check)(spec)
}

/// Returns the size of a message at a push service in bytes, without the token.
pub(crate) fn payload_bytes(provider: ProviderKind, message: &Message) -> u64 {
    (stentor_providers::descriptor(provider).payload_bytes)(message) as u64
}

/// Shows the request that a message causes with a credential; `None` if there is none.
pub(crate) fn preview(credential: &Credential, message: &Message) -> Result<Option<RequestPreview>, Invalid> {
    let Some(preview) = stentor_providers::descriptor(credential.provider).preview else { return Ok(None) };
    let ours = split(credential, &Limits::default())?;
    preview(&ours.rest, message).map(Some).map_err(CredentialError::into_invalid)
}

/// Checks that a credential's JSON can be used; connects to nothing.
pub(crate) fn check_credential(
    credential: &Credential,
    clock: Arc<dyn Clock>,
) -> Result<(), CredentialError> {
    Adapters::new(clock, Limits::default(), OutboundPolicy::default()).open(credential).map(|_| ())
}

/// Returns a host of a credential to which connections are not allowed, without resolving names; none if the credential cannot be parsed.
pub(crate) fn refused_host(credential: &Credential, policy: &OutboundPolicy) -> Option<RefusedHost> {
    let ours = split(credential, &Limits::default()).ok()?;
    stentor_providers::refused_host(credential.provider, &ours.rest, policy).ok()?
}

/// Returns a credential's endpoint for display, without the user that older credentials may contain.
pub(crate) fn shown_endpoint(endpoint: &str) -> String {
    match endpoint.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{}", rest.rsplit('@').next().unwrap_or_default()),
        None => endpoint.rsplit('@').next().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use stentor_core::id::AppId;
    use stentor_core::time::Timestamp;

    use super::*;

    fn credential(provider: ProviderKind, secret: &str) -> Credential {
        let (app, updated_at) = (AppId::from_raw(1), Timestamp::default());
        Credential { app, provider, secret: secret.to_owned(), updated_at }
    }

    #[test]
    fn our_own_fields_are_obeyed_and_not_handed_on() {
        let secret = r#"{"service_account":{},"quota":"none","max_connections":3}"#;
        let ours = split(&credential(ProviderKind::Fcm, secret), &Limits::default()).expect("readable");
        assert_eq!((ours.limits.max_connections, ours.quota), (3, None));
        assert_eq!(ours.rest, r#"{"service_account":{}}"#);
    }

    #[test]
    fn r17_the_user_in_an_endpoint_of_an_older_credential_is_not_shown() {
        for (stored, shown) in [
            ("https://me:hush@host:8443", "https://host:8443"),
            ("https://me:hu@sh@host", "https://host"),
            ("me:hush@host", "host"),
            ("https://host:8443", "https://host:8443"),
        ] {
            assert_eq!(shown_endpoint(stored), shown);
        }
    }

    #[test]
    fn a_credential_has_the_quota_it_names_or_its_push_service_s() {
        assert_eq!(quota(&credential(ProviderKind::Fcm, "{}")), Some(600_000));
        assert_eq!(quota(&credential(ProviderKind::Apns, "{}")), None);
        assert_eq!(quota(&credential(ProviderKind::Apns, r#"{"quota":1200}"#)), Some(1_200));
    }

    #[test]
    fn what_would_have_no_effect_is_refused() {
        let wrong = [r#""none?""#, "0", "-1", "1.5", "4000000000", "{}"].map(|quota| ("quota", quota));
        for (field, value) in wrong.into_iter().chain([("max_connections", "0")]) {
            let credential = credential(ProviderKind::Fcm, &format!("{{\"{field}\":{value}}}"));
            let refused = split(&credential, &Limits::default()).err();
            assert_eq!(refused.expect(value).field, field);
        }
    }
}
