//! What an operator may set about what devices send.

use serde::Deserialize;
use stentor_core::outbound::{Allowance, OutboundPolicy};

use super::OutboundConfig;
use super::outbound::allowances;

/// Who takes over what devices send, where the operator does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamConfig {
    /// A program and its arguments; empty for none.
    pub command: Vec<String>,
    /// Where webhooks of apps may be, beside the public internet.
    #[serde(deserialize_with = "allowances")]
    pub webhook_networks: Vec<Allowance>,
    /// Longest time that a command or a webhook may take for one message.
    pub timeout_seconds: u64,
    /// Attempts after which a message is a dead letter.
    pub attempts_max_count: u16,
    /// Wait before the second attempt; each later one is twice as long, up to five minutes.
    pub retry_base_ms: u64,
}

impl UpstreamConfig {
    /// Returns what decides where webhooks may be: what is allowed for credentials is allowed for them as well.
    #[must_use]
    pub fn webhook_policy(&self, outbound: &OutboundConfig) -> OutboundPolicy {
        let both = self.webhook_networks.iter().chain(&outbound.allowed_networks);
        OutboundPolicy::new(both.copied().collect())
    }
}
