//! One campaign to devices of our own gateway. They register themselves, are connected over MQTT while the server is killed, and report at
//! the end the messages that each of them received.

mod campaign;
mod comparison;

use super::kills::Kills;
use super::options::SECONDS_PER_KILL;
use super::report::{DemoFindings, DemoReport, GatewayFigures, ImportCost};
use crate::client::{ApiClient, Key, segment};
use crate::emulated::elapsed_text;
use crate::limits;
use crate::mqtt_devices::{self, MqttDeviceOptions, MqttDevices, RegisteredDevice};
use crate::reporter::Reporter;
use crate::server::{Server, data_dir};
use crate::stage::StageDirectory;
use crate::text::{cell, thousands};
use anyhow::Context;
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The address with which the server chooses a port by itself; a device has to find it again after a kill.
const ANY_PORT: &str = "127.0.0.1:0";

/// The rate of receipts in campaigns with kills: below the rate that any machine takes, so that none is late when the next is due.
const RECEIPTS_PER_SECOND: f64 = 8_000.0;

/// A campaign over our own gateway, with its kills.
#[derive(Clone, Debug)]
pub struct GatewayDemoOptions {
    /// The devices that are connected.
    pub devices: u64,
    /// The number of kills of the server.
    pub kills: u32,
    /// The seed of the moments.
    pub seed: u64,
    /// The directory of all files; if absent, a directory that is removed with the demo.
    pub keep: Option<PathBuf>,
    /// The mean time until a device confirms a message; if absent, long enough for all kills.
    pub latency: Option<Duration>,
    /// The time without a change after which the campaign is given up although receipts are missing.
    pub give_up_after: Duration,
}

impl GatewayDemoOptions {
    /// Devices confirm at some moment within this time: with kills it is as long as these need to fall into it.
    fn confirm_within(&self) -> Duration {
        let parts = if self.kills > 0 { f64::from(self.kills) + 1.0 } else { 0.0 };
        let seconds = parts * SECONDS_PER_KILL.max(self.devices as f64 / RECEIPTS_PER_SECOND);
        self.latency.map_or_else(|| Duration::from_secs_f64(seconds), |latency| 2 * latency)
    }

    fn kills(&self) -> Kills {
        Kills { server: self.kills, ..Kills::default() }
    }
}

/// The processes of a gateway campaign.
struct GatewayStage {
    server: Server,
    client: ApiClient,
    join_client: ApiClient,
    mqtt: SocketAddr,
    // Dropped after the server, because it holds the server's files.
    _directory: StageDirectory,
}

/// Plays it from beginning to end.
pub async fn run_gateway(
    options: &GatewayDemoOptions,
    reporter: &Arc<dyn Reporter>,
) -> anyhow::Result<DemoReport> {
    let mut stage = GatewayStage::build(options, &**reporter).await?;
    let (registered, took) = mqtt_devices::register(&stage.join_client, options.devices, &**reporter).await?;
    let devices = connect(options, &stage, &registered, &**reporter).await?;
    let run = campaign::run(options, &mut stage, &devices, &**reporter).await?;
    let compared = Instant::now();
    let ledger = &run.result.ledger;
    let comparison = comparison::run(&stage.client, &registered, &devices.records(), ledger).await?;
    reporter.line(&format!(
        "comparison: {} devices{}, the ledger queried about {}",
        thousands(options.devices),
        elapsed_text(" in ", compared.elapsed()),
        thousands(comparison.asked)
    ));
    let figures = figures(&devices);
    // Before the server: devices that lose it would only try to come back.
    drop(devices);
    let (usage, limits) = (stage.server.stop(), stage.server.limits()?);
    let import = ImportCost { seconds: took.as_secs_f64(), usage: None };
    let findings =
        DemoFindings { devices: options.devices, run: run.result, comparison, usage, import, limits };
    Ok(DemoReport::of_gateway(options.kills, run.unconfirmed_at_kills, figures, findings))
}

fn figures(devices: &MqttDevices) -> GatewayFigures {
    let records = devices.records();
    GatewayFigures {
        connected_max: devices.connected_max(),
        connections: records.iter().map(|record| u64::from(record.connections)).sum(),
        receptions: records.iter().map(|record| record.all_receptions()).sum(),
    }
}

/// Connects the devices, and waits until as many are connected as can be at once.
async fn connect(
    options: &GatewayDemoOptions,
    stage: &GatewayStage,
    registered: &[RegisteredDevice],
    reporter: &dyn Reporter,
) -> anyhow::Result<MqttDevices> {
    let confirm_within = options.confirm_within();
    let behaviour = MqttDeviceOptions { server: stage.mqtt, confirm_within, seed: options.seed };
    let devices = MqttDevices::start(registered, behaviour);
    let (places, mut progress) = (devices.places(), reporter.begin("connections", options.devices));
    let (mut connected, mut moved_at) = (0, Instant::now());
    while connected < places {
        if moved_at.elapsed() > options.give_up_after {
            anyhow::bail!(
                "only {connected} of {places} devices could connect: look at the server's log (--keep DIR)"
            );
        }
        tokio::time::sleep(campaign::POLL_INTERVAL).await;
        let now = devices.connected();
        if now != connected {
            (connected, moved_at) = (now, Instant::now());
            progress.update(connected);
        }
    }
    progress.finish(connected);
    reporter.line(&format!("{} devices are connected over MQTT", thousands(connected)));
    Ok(devices)
}

impl GatewayStage {
    /// Starts the server, and makes an app and the key with which devices register.
    async fn build(options: &GatewayDemoOptions, reporter: &dyn Reporter) -> anyhow::Result<Self> {
        let started = Instant::now();
        let directory = StageDirectory::make(options.keep.as_deref())?;
        let settings = |address: &str| settings(address, options.devices);
        let mut server = Server::start_with(directory.path(), Some(settings(ANY_PORT)), Vec::new()).await?;
        let mqtt_address = std::fs::read_to_string(data_dir(directory.path()).join("mqtt.addr"));
        let mqtt_address = mqtt_address.context("the server has not written the address of MQTT")?;
        // The same port after each kill: devices do not look up the server's address again.
        server.restart_with(&settings(mqtt_address.trim()), None).await?;
        let root = server.client()?;
        let app = cell(&root.post("/v1/apps", &json!({"name": "demo"})).await?["id"]);
        let key = json!({"name": "devices", "scopes": ["join"]});
        let key = root.post(&format!("/v1/apps/{}/keys", segment(&app)), &key).await?;
        let join_client = ApiClient::new(root.server(), Some(Key(cell(&key["secret"]))), None)?;
        reporter.line(&format!(
            "the server is ready{} in {}; devices confirm within {:.1} s; limits in force: {}",
            elapsed_text(" after ", started.elapsed()),
            directory.path().display(),
            options.confirm_within().as_secs_f64(),
            limits::describe(&server.limits()?)
        ));
        Ok(Self {
            server,
            client: root.for_app(app),
            join_client,
            mqtt: mqtt_address.trim().parse()?,
            _directory: directory,
        })
    }
}

/// The settings of the server. Devices may register as fast as they can, because the measurement begins after that.
fn settings(mqtt_listen: &str, devices: u64) -> String {
    format!("[gateway]\nmqtt_listen = \"{mqtt_listen}\"\nregistrations_burst_max_count = {devices}\n")
}
