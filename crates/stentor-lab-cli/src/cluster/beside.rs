//! The activities beside the campaign, and their logs.

use super::ClusterOptions;
use super::caller::ClusterCaller;
use super::controlled::{ControlledLog, ControlledTraffic};
use super::faults_state::FaultsState;
use super::gateway_devices::{GatewayDevices, GatewayFindings, JoinedDevices};
use super::traffic::{self, SideTraffic, TrafficLog};
use std::sync::Arc;
use stentor_stage::client::ApiClient;
use tokio::task::JoinHandle;

/// Tasks beside the campaign.
pub(crate) struct BesideTasks {
    traffic: JoinHandle<TrafficLog>,
    controlled: JoinHandle<ControlledLog>,
    gateway: Option<GatewayDevices>,
    state: Arc<FaultsState>,
}

/// Logs of the tasks.
pub(crate) struct BesideLogs {
    pub(crate) traffic: TrafficLog,
    pub(crate) controlled: ControlledLog,
    pub(crate) gateway: Option<GatewayFindings>,
}

impl BesideTasks {
    /// Begins the tasks, with clients for the app of the plain campaign and for the app with the slow quota.
    pub(crate) async fn begin(
        options: &ClusterOptions,
        state: &Arc<FaultsState>,
        [clients, slow]: [&[ApiClient]; 2],
        joined: Option<JoinedDevices>,
    ) -> anyhow::Result<Self> {
        let caller = |clients: &[ApiClient]| ClusterCaller::new(clients.to_vec(), state.clone());
        let others = options.others();
        let controlled =
            ControlledTraffic::new([caller(clients), caller(slow)], others, traffic::DEVICES_MAX);
        let gateway = match joined {
            Some(joined) => Some(joined.run().await?),
            None => None,
        };
        let (traffic, controlled) = (SideTraffic::new(caller(clients), others).run(), controlled.run());
        let (traffic, controlled) = (tokio::spawn(traffic), tokio::spawn(controlled));
        Ok(Self { traffic, controlled, gateway, state: state.clone() })
    }

    /// Waits until all that was promised has come, if it comes in time.
    pub(crate) async fn finish(self, [clients, slow]: [&[ApiClient]; 2]) -> anyhow::Result<BesideLogs> {
        let (mut traffic, mut controlled) = (self.traffic.await?, self.controlled.await?);
        let limit = self.state.end_limit();
        traffic.until_ended(clients, limit).await;
        controlled.until_ended([clients, slow], limit).await;
        let gateway = match self.gateway {
            Some(devices) => Some(devices.finish().await?),
            None => None,
        };
        Ok(BesideLogs { traffic, controlled, gateway })
    }
}
