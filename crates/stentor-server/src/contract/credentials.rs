//! Credentials of an app at push services.

use std::collections::BTreeMap;

use serde::Serialize;
use stentor_core::device::ProviderKind;
use stentor_core::outcome::Reason;
use utoipa::ToSchema;

use super::Instant;

/// A credential as its push service issued it: a JSON object, whose fields the push service's descriptor names.
#[derive(Clone)]
pub struct CredentialRequest {
    /// The object's text.
    pub(crate) json: Vec<u8>,
}

/// What may be shown of a credential.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct CredentialSummary {
    /// What its adapter shows, each under its name.
    #[serde(flatten)]
    #[schema(ignore)]
    pub(crate) names: BTreeMap<&'static str, String>,
    /// Messages per minute that may be sent; absent for as many as the push service takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quota_per_minute: Option<u32>,
    /// Where requests go instead of the vendor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) endpoint: Option<String>,
}

/// How a quota stands.
#[derive(Serialize, ToSchema)]
pub struct QuotaStatus {
    /// Messages per minute that are allowed now, while the credential warms up.
    pub(crate) per_minute_now: u64,
    /// Messages that may go at once.
    pub(crate) tokens: u64,
    /// How long work has waited for it at this server since its start.
    pub(crate) throttled_seconds: f64,
}

/// What may be shown of a credential.
#[derive(Serialize, ToSchema)]
#[schema(as = Credential)]
pub struct CredentialView {
    #[schema(value_type = String)]
    pub(crate) provider: ProviderKind,
    pub(crate) updated_at: Instant,
    pub(crate) summary: CredentialSummary,
    /// `ok` or `parked`.
    pub(crate) state: &'static str,
    /// Why it is parked, in a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) reason: Option<Reason>,
    /// Why it is parked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// How its quota stands, once it was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quota: Option<QuotaStatus>,
}

/// Credentials of an app.
#[derive(Serialize, ToSchema)]
pub struct CredentialList {
    pub(crate) credentials: Vec<CredentialView>,
}

/// What trying a credential came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CredentialCheck {
    #[schema(value_type = String)]
    pub(crate) provider: ProviderKind,
    /// Whether an access token was got, where there is one, and a connection with a good certificate.
    pub(crate) works: bool,
    /// Where it failed, as `host:port`; absent where it works, and where it failed before any host was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<String>,
    /// Why it does not work; it names the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
}
