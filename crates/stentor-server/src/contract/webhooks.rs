//! The webhook to which an app's upstream messages are posted.

use serde::{Deserialize, Serialize};
use stentor_core::upstream::UpstreamWebhook;
use utoipa::ToSchema;

use super::Instant;

/// Maximum length of a webhook URL.
pub(crate) const WEBHOOK_URL_MAX_BYTES: usize = 2_048;

/// URL to which upstream messages are posted, and the secret that signs them.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamWebhookRequest {
    /// The URL: `https://app.example.org/from-devices`.
    pub(crate) url: String,
    /// Secret that signs the requests: `whsec_` and 24 to 64 bytes in base64, as in Standard Webhooks. Generated when absent.
    #[serde(default)]
    pub(crate) secret: Option<String>,
}

/// A webhook of an app, without its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = UpstreamWebhook)]
pub struct UpstreamWebhookView {
    /// The URL to which messages are posted.
    pub(crate) url: String,
    pub(crate) updated_at: Instant,
}

/// A newly set webhook.
#[derive(Serialize, ToSchema)]
pub struct NewUpstreamWebhook {
    /// The URL to which messages are posted.
    pub(crate) url: String,
    pub(crate) updated_at: Instant,
    /// The generated secret, which is shown only once; absent if the request contained one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<String>,
}

impl From<UpstreamWebhook> for UpstreamWebhookView {
    fn from(webhook: UpstreamWebhook) -> Self {
        Self { url: webhook.url, updated_at: webhook.updated_at.into() }
    }
}
