//! Wills: messages sent in the name of a device after its connection was lost.

use tokio::time::Duration;
use tokio_util::sync::CancellationToken;

use super::request::MqttPublish;
use super::session_record;
use super::upstream::draft_of;
use crate::gateway::Gateway;
use crate::identity::DeviceIdentity;
use crate::session_outcomes::{OutcomeListener, SessionOutcome};

/// A will, from the login on.
#[derive(Debug)]
pub(super) struct WaitingWill {
    pub(super) publish: MqttPublish,
    /// The time during which the device may return.
    pub(super) delay: Duration,
    /// Lifetime of the session after the connection, as requested at the login.
    pub(super) expiry_seconds: u32,
    /// The channel that reports the outcome of the session; `None` if there is nothing to wait for.
    pub(super) outcome: Option<OutcomeListener>,
}

impl WaitingWill {
    /// Sends the will, unless the device resumes its session within the delay. The delay ends with the session at the latest (3.1.3.2.2 of
    /// MQTT 5), whose expiry the device may have changed at the end. `record` is the session's.
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
        // No resumption at this server; the device may have returned at another one.
        let Some(record) = record else { return true };
        !session_record::is_gone_on_with(gateway, identity, record).await.unwrap_or_default()
    }
}
