//! Wills: messages in the name of a device that is gone without a word.

use tokio::time::Duration;
use tokio_util::sync::CancellationToken;

use super::request::MqttPublish;
use super::session_record;
use super::upstream::draft_of;
use crate::gateway::Gateway;
use crate::identity::DeviceIdentity;
use crate::session_outcomes::{OutcomeListener, SessionOutcome};

/// A will from the login on.
#[derive(Debug)]
pub(super) struct WaitingWill {
    pub(super) publish: MqttPublish,
    /// Its wait for the device to come back.
    pub(super) delay: Duration,
    /// The session's life after the connection, as the login said.
    pub(super) expiry_seconds: u32,
    /// Where what becomes of the session is heard; nowhere where there is nothing to wait for.
    pub(super) outcome: Option<OutcomeListener>,
}

impl WaitingWill {
    /// Sends it, unless the device comes back to its session before the delay is over. It waits no longer than the session goes on
    /// (3.1.3.2.2 of MQTT 5), which the device may have changed at the end. `record` is the session's.
    pub(super) async fn send(
        mut self,
        gateway: &Gateway,
        identity: DeviceIdentity,
        record: Option<&str>,
        changed_seconds: Option<u32>,
        stopping: &CancellationToken,
    ) {
        let expiry = Duration::from_secs(changed_seconds.unwrap_or(self.expiry_seconds).into());
        let delay = self.delay.min(expiry);
        if !delay.is_zero() && !self.is_due_after(delay, gateway, identity, record, stopping).await {
            return;
        }
        let Some(draft) = draft_of(&self.publish) else { return };
        if let Err(error) = gateway.keep_upstream(identity, draft).await {
            tracing::warn!(?error, device = %identity.device, "a will could not be kept");
        }
    }

    async fn is_due_after(
        &mut self,
        delay: Duration,
        gateway: &Gateway,
        identity: DeviceIdentity,
        record: Option<&str>,
        stopping: &CancellationToken,
    ) -> bool {
        let outcome = async {
            match &mut self.outcome {
                Some(outcome) => outcome.known().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            outcome = outcome => return outcome == SessionOutcome::Over,
            () = stopping.cancelled() => return false,
            () = tokio::time::sleep(delay) => {}
        }
        // Nothing was heard here; it may have come back at another server.
        let Some(record) = record else { return true };
        !session_record::is_gone_on_with(gateway, identity, record).await.unwrap_or_default()
    }
}
