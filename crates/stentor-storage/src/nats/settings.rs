//! Settings of a stream of tickets.

use std::time::Duration;

/// Settings of a stream of tickets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsSettings {
    /// The stream's name, which all its subjects begin with; each installation has its own.
    pub stream: String,
    /// Servers that keep each ticket.
    pub replicas_count: usize,
    /// The time without a reply after which the server delivers a leased ticket to another process.
    pub ack_wait: Duration,
    /// The longest wait for a reply.
    pub reply_timeout: Duration,
}

impl Default for NatsSettings {
    fn default() -> Self {
        Self {
            stream: "stentor".to_owned(),
            replicas_count: 1,
            ack_wait: Duration::from_secs(60),
            reply_timeout: Duration::from_secs(5),
        }
    }
}
