//! One message on its way to a webhook or to the operator's command, until it is taken over or given up.

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

/// Why a message was not taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HandoverRefusal {
    /// In a sentence without secrets.
    pub(super) reason: String,
    /// How long it wants to be left alone.
    pub(super) retry_after: Option<Duration>,
}

impl HandoverRefusal {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), retry_after: None }
    }
}

/// Whom an app's messages are handed to.
pub(super) enum HandoverTarget {
    Command(OperatorCommand),
    Webhook(Box<Webhook>),
}

/// How an app's messages are handed over.
pub(super) struct Handover {
    pub(super) target: HandoverTarget,
    /// Calls at once, of all apps.
    pub(super) places: Arc<CallPlaces>,
    pub(super) pace: CallPace,
    pub(super) policy: RetryPolicy,
}

impl Handover {
    /// Hands a message over once, and returns whether it has not expired; `attempt` counts from 1.
    pub(super) async fn call(
        &self,
        message: &UpstreamMessage,
        attempt: u32,
        now: impl Fn() -> Timestamp,
    ) -> Result<bool, HandoverRefusal> {
        let mut is_live = true;
        let call = async {
            // Asked once there is a place: it may have expired while it waited for one.
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

    /// Returns how long to wait after an attempt that failed; none when there is no next one.
    pub(super) fn pause(&self, attempt: u32, retry_after: Option<Duration>) -> Option<Duration> {
        let attempt = u16::try_from(attempt).unwrap_or(u16::MAX);
        let goes_on = attempt < self.policy.max_attempts;
        goes_on.then(|| self.policy.wait(attempt, rand::random(), retry_after))
    }
}

/// Writes a message as command and webhook get it.
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
