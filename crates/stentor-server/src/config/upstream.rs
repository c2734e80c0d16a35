//! What an operator may set about what devices send.

use serde::Deserialize;

/// Who takes over what devices send, where the operator does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamConfig {
    /// A program and its arguments; empty for none.
    pub command: Vec<String>,
    /// Longest time that it may take for one message.
    pub timeout_seconds: u64,
    /// Attempts after which a message is a dead letter.
    pub attempts_max_count: u16,
    /// Wait before the second attempt; each later one is twice as long, up to five minutes.
    pub retry_base_ms: u64,
}
