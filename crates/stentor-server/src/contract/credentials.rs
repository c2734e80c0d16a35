//! Credentials of an app at push services.

use std::collections::BTreeMap;

use serde::Serialize;
use stentor_core::device::ProviderKind;
use stentor_core::outcome::Reason;
use utoipa::ToSchema;

use super::Instant;

/// A credential as issued by the push service: a JSON object with the fields that the push service's descriptor names.
#[derive(Clone)]
pub struct CredentialRequest {
    /// Text of the JSON object.
    pub(crate) json: Vec<u8>,
}

/// The public part of a credential.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct CredentialSummary {
    /// Values that the adapter shows, by name.
    #[serde(flatten)]
    #[schema(ignore)]
    pub(crate) names: BTreeMap<&'static str, String>,
    /// Maximum messages per minute; absent if only the push service limits them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quota_per_minute: Option<u32>,
    /// Address that requests are sent to instead of the vendor's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) endpoint: Option<String>,
}

/// State of a quota.
#[derive(Serialize, ToSchema)]
pub struct QuotaStatus {
    /// Messages allowed per minute at present, while the credential warms up.
    pub(crate) per_minute_now: u64,
    /// Messages that may be sent at once.
    pub(crate) tokens: u64,
    /// Seconds for which work at this server has waited for the quota since the server's start.
    pub(crate) throttled_seconds: f64,
}

/// One of the push services behind a provider, as this server sees it.
#[derive(Serialize, ToSchema)]
pub struct PushServiceStatus {
    /// Scheme, host and port.
    pub(crate) origin: String,
    /// Learned limit of messages per minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) per_minute: Option<u32>,
    /// Reason of its rest, as a stable word; absent while it takes messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) reason: Option<Reason>,
    /// Expected seconds until the deliveries that it has deferred so far are sent.
    pub(crate) backlog_seconds: f64,
}

/// A credential without its secrets.
#[derive(Serialize, ToSchema)]
#[schema(as = Credential)]
pub struct CredentialView {
    #[schema(value_type = String)]
    pub(crate) provider: ProviderKind,
    pub(crate) updated_at: Instant,
    pub(crate) summary: CredentialSummary,
    /// `ok` or `parked`.
    pub(crate) state: &'static str,
    /// Reason for parking, as a stable word.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) reason: Option<Reason>,
    /// Reason for parking, in plain words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// State of the quota; absent before the first use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quota: Option<QuotaStatus>,
    /// Push services that limit this server or rest, where each device names its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) push_services: Vec<PushServiceStatus>,
}

/// Credentials of an app.
#[derive(Serialize, ToSchema)]
pub struct CredentialList {
    pub(crate) credentials: Vec<CredentialView>,
}

/// Result of a credential check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CredentialCheck {
    #[schema(value_type = String)]
    pub(crate) provider: ProviderKind,
    /// True if the server got an access token, where the push service uses one, and a connection with a valid certificate.
    pub(crate) works: bool,
    /// Host of the failure, as `host:port`; absent on success, and if the check failed before it contacted a host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<String>,
    /// Cause of the failure, including the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
}
