//! Where an app wants what its devices send.

use serde::{Deserialize, Serialize};
use stentor_core::upstream::UpstreamWebhook;
use utoipa::ToSchema;

use super::Instant;

/// Longest address of a webhook.
pub(crate) const WEBHOOK_URL_MAX_BYTES: usize = 2_048;

/// Where messages of devices are posted to, and what they are signed with.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamWebhookRequest {
    /// The address: `https://app.example.org/from-devices`.
    pub(crate) url: String,
    /// What requests are signed with: `whsec_` and 24 to 64 bytes in base64, as Standard Webhooks has it. A new one is made when
    /// absent.
    #[serde(default)]
    pub(crate) secret: Option<String>,
}

/// A webhook of an app, without its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = UpstreamWebhook)]
pub struct UpstreamWebhookView {
    /// The address that messages are posted to.
    pub(crate) url: String,
    pub(crate) updated_at: Instant,
}

/// A webhook that was put.
#[derive(Serialize, ToSchema)]
pub struct NewUpstreamWebhook {
    /// The address that messages are posted to.
    pub(crate) url: String,
    pub(crate) updated_at: Instant,
    /// The secret that was made, shown this once; absent when it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<String>,
}

impl From<UpstreamWebhook> for UpstreamWebhookView {
    fn from(webhook: UpstreamWebhook) -> Self {
        Self { url: webhook.url, updated_at: webhook.updated_at.into() }
    }
}
