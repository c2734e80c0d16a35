//! Devices of the gateway at the nodes of a cluster: they reconnect at any node, receive campaigns and single messages, confirm them, and
//! send to their app, and the app server reads their messages.

mod device;
mod findings;
mod messages;
mod minutes;
mod reader;
mod records;

use super::caller::ClusterCaller;
use super::faults_state::FaultsState;
use device::{DeviceParts, GatewayDevice};
pub(crate) use findings::GatewayFindings;
use findings::Judgement;
use messages::GatewayMessages;
use minutes::MinuteSchedule;
use reader::UpstreamReader;
use records::GatewayRecords;
use serde_json::json;
use std::sync::Arc;
use stentor_stage::client::{ApiClient, Key, segment};
use stentor_stage::mqtt_devices::{self, RegisteredDevice};
use stentor_stage::reporter::Reporter;
use stentor_stage::text::cell;
use tokio::task::{JoinHandle, JoinSet};

/// Streams of the app server.
const READERS: usize = 2;

/// Options of the devices of the gateway.
pub(crate) struct GatewayDevicesOptions {
    /// Number of devices.
    pub(crate) devices: u64,
    /// URLs of the nodes that serve devices.
    pub(crate) urls: Vec<String>,
    /// Clients of the nodes that serve the API, acting for the app of these devices.
    pub(crate) clients: Vec<ApiClient>,
    /// Seed of times and places.
    pub(crate) seed: u64,
    /// Progress of the faults.
    pub(crate) state: Arc<FaultsState>,
}

/// Registered devices.
pub(crate) struct JoinedDevices {
    options: GatewayDevicesOptions,
    registered: Vec<RegisteredDevice>,
}

/// Running devices, with the tasks that send to them and read their messages; dropping them ends them.
pub(crate) struct GatewayDevices {
    clients: Vec<ApiClient>,
    ids: Vec<String>,
    records: Arc<GatewayRecords>,
    messages: JoinHandle<messages::GatewayLog>,
    minutes: MinuteSchedule,
    running: JoinSet<()>,
    state: Arc<FaultsState>,
}

impl JoinedDevices {
    /// Registers the devices, each by itself.
    pub(crate) async fn register(
        options: GatewayDevicesOptions,
        reporter: &dyn Reporter,
    ) -> anyhow::Result<Self> {
        let client = &options.clients[0];
        let keys = format!("/v1/apps/{}/keys", segment(client.app().unwrap_or_default()));
        let key = client.post(&keys, &json!({"name": "devices", "scopes": ["join"]})).await?;
        let joining = ApiClient::new(&options.urls[0], Some(Key(cell(&key["secret"]))), None)?;
        let (registered, _) = mqtt_devices::register(&joining, options.devices, reporter).await?;
        Ok(Self { options, registered })
    }

    /// Connects the devices, and sends to them until the faults are over.
    pub(crate) async fn run(self) -> anyhow::Result<GatewayDevices> {
        let Self { options, registered } = self;
        let GatewayDevicesOptions { urls, clients, seed, state, .. } = options;
        let records = Arc::new(GatewayRecords::new(registered.len()));
        let ids: Vec<_> = registered.iter().map(|device| device.id.clone()).collect();
        let parts = Arc::new(DeviceParts::new(urls, seed, records.clone(), state.clone())?);
        let mut running = JoinSet::new();
        for (number, device) in registered.into_iter().enumerate() {
            running.spawn(GatewayDevice::new(parts.clone(), number, device).run());
        }
        let caller = || ClusterCaller::new(clients.clone(), state.clone());
        for place in 0..READERS {
            running.spawn(UpstreamReader::new(caller(), place, records.clone()).run());
        }
        let minutes = MinuteSchedule::begin(caller()).await?;
        let messages = tokio::spawn(GatewayMessages::new(caller(), ids.clone(), seed).run());
        Ok(GatewayDevices { clients, ids, records, messages, minutes, running, state })
    }
}

impl GatewayDevices {
    /// Waits until all accepted messages have ended, or until the limit, and judges the result.
    pub(crate) async fn finish(self) -> anyhow::Result<GatewayFindings> {
        let Self { clients, ids, records, messages, minutes, running, state } = self;
        let mut log = messages.await?;
        let occurrences = minutes.finish(&log).await;
        log.promises.extend(occurrences.promises());
        let (clients, ids, records, limit) = (&clients, &ids, &records, state.end_limit());
        let judgement = Judgement { clients, ids, records, log, occurrences, limit };
        let findings = judgement.run().await;
        drop(running);
        Ok(findings)
    }
}
