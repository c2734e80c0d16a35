//! The handover of one message to a webhook or the operator's command, until it is accepted or given up.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use stentor_core::retry::RetryPolicy;
use stentor_core::time::Timestamp;
use stentor_core::upstream::UpstreamMessage;

use super::call_places::{CallPace, CallPlaces};
use super::command::OperatorCommand;
use super::webhook::Webhook;
use crate::contract::Instant;
use crate::contract::upstream::said;

/// The reason why a message was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HandoverRefusal {
    /// A sentence without secrets.
    pub(super) reason: String,
    /// The wait that the receiver requests.
    pub(super) retry_after: Option<Duration>,
}

impl HandoverRefusal {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), retry_after: None }
    }
}

/// The receiver of an app's messages.
pub(super) enum HandoverTarget {
    Command(OperatorCommand),
    Webhook(Box<Webhook>),
}

/// The settings of an app's handovers.
pub(super) struct Handover {
    pub(super) target: HandoverTarget,
    /// Places for concurrent calls, shared by all apps.
    pub(super) places: Arc<CallPlaces>,
    pub(super) pace: CallPace,
    pub(super) policy: RetryPolicy,
}

impl Handover {
    /// Hands a message over once. Returns false if it has expired; `attempt` counts from 1.
    pub(super) async fn call(
        &self,
        message: &UpstreamMessage,
        attempt: u32,
        now: impl Fn() -> Timestamp,
    ) -> Result<bool, HandoverRefusal> {
        let mut is_live = true;
        let call = async {
            // Checked once there is a place, because the message may have expired while it waited.
            is_live = message.expires_at > now();
            if !is_live {
                return Ok(());
            }
            let body = body(message, attempt);
            match &self.target {
                HandoverTarget::Command(command) => command.run(body).await,
                HandoverTarget::Webhook(webhook) => webhook.post(message.id, body, now()).await,
            }
        };
        self.places.call(&self.pace, call).await?;
        Ok(is_live)
    }

    /// Returns the wait after a failed attempt; `None` if it was the last one.
    pub(super) fn pause(&self, attempt: u32, retry_after: Option<Duration>) -> Option<Duration> {
        let attempt = u16::try_from(attempt).unwrap_or(u16::MAX);
        let goes_on = attempt < self.policy.max_attempts;
        goes_on.then(|| self.policy.wait(attempt, rand::random(), retry_after))
    }
}

/// Encodes a message for the command and the webhook.
fn body(message: &UpstreamMessage, attempt: u32) -> String {
    let body = json!({
        "id": message.id,
        "app": message.app,
        "device": message.device,
        "key": message.key,
        "data": said(message),
        "attempt": attempt,
        "again": attempt > 1,
        "created_at": Instant::from(message.created_at),
        "expires_at": Instant::from(message.expires_at),
    });
    body.to_string()
}
