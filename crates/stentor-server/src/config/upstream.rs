//! Settings of upstream messages.

use std::ffi::OsString;

use serde::Deserialize;
use stentor_core::outbound::{Allowance, OutboundPolicy};

use super::OutboundConfig;
use super::outbound::allowances;

/// The operator's consumer of upstream messages, and the limits of webhooks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamConfig {
    /// A program and its arguments; empty for none.
    pub command: Vec<String>,
    /// Variables of its environment beside those that every program needs: `NAME` for the server's own, or `NAME=value`.
    pub command_environment: Vec<String>,
    /// Networks beside the public internet in which webhooks of apps may be.
    #[serde(deserialize_with = "allowances")]
    pub webhook_networks: Vec<Allowance>,
    /// Longest time that a command or a webhook may take for one message.
    pub timeout_seconds: u64,
    /// Attempts after which a message is a dead letter.
    pub attempts_max_count: u16,
    /// Wait before the second attempt; each later one is twice as long, up to five minutes.
    pub retry_base_ms: u64,
}

/// The variables that a command inherits from the server: none holds a secret.
const TAKEN_OVER: [&str; 5] = ["PATH", "LANG", "LC_ALL", "TZ", "TMPDIR"];

impl UpstreamConfig {
    /// Returns the complete environment of the command: the inherited variables and the configured ones.
    #[must_use]
    pub fn environment_of_command(&self) -> Vec<(OsString, OsString)> {
        let taken_over = |name: &str| Some((name.into(), std::env::var_os(name)?));
        let set = self.command_environment.iter().filter_map(|given| match given.split_once('=') {
            Some((name, value)) => Some((name.into(), value.into())),
            None => taken_over(given),
        });
        TAKEN_OVER.into_iter().filter_map(taken_over).chain(set).collect()
    }

    /// Returns the policy for the addresses of webhooks. It includes the networks that are allowed for credentials.
    #[must_use]
    pub fn webhook_policy(&self, outbound: &OutboundConfig) -> OutboundPolicy {
        let both = self.webhook_networks.iter().chain(&outbound.allowed_networks);
        OutboundPolicy::new(both.copied().collect())
    }
}
