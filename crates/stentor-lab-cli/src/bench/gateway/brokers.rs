//! Brokers of MQTT, measured with the same devices and messages: each device subscribes with QoS 1 to one topic, to which the messages
//! are published.

use super::GatewayOptions;
use super::messages_to_all::DeviceTrial;
use super::publisher::{BROKER_TOPIC, MqttPublisher, Publisher};
use super::report::{BrokerRow, ConnectionRow};
use super::setting::free_address;
use crate::device_load::orders::DeviceLogin;
use crate::device_load::process::{DeviceProcesses, DeviceServer};
use anyhow::Context;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use stentor_stage::child_process::ChildProcess;
use stentor_stage::reporter::Reporter;
use tokio::net::TcpStream;

const START_LIMIT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// System folders that a search path may lack.
const SYSTEM_FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// Brokers to measure beside the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BrokerChoice {
    /// All installed brokers.
    All,
    /// No broker.
    None,
}

/// A supported broker.
struct BrokerKind {
    name: &'static str,
    program: &'static str,
    version_argument: &'static str,
    config_argument: &'static str,
    config: fn(SocketAddr, &Path, usize) -> String,
}

const KINDS: [BrokerKind; 2] = [
    BrokerKind {
        name: "mosquitto",
        program: "mosquitto",
        version_argument: "-h",
        config_argument: "-c",
        config: mosquitto_config,
    },
    BrokerKind {
        name: "nats-server",
        program: "nats-server",
        version_argument: "--version",
        config_argument: "-c",
        config: nats_config,
    },
];

fn mosquitto_config(address: SocketAddr, _folder: &Path, connections: usize) -> String {
    format!(
        "listener {} {}\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\nmax_connections {}\nlog_type error\n",
        address.port(),
        address.ip(),
        connections + 100
    )
}

/// Configuration of nats-server. JetStream gives each device with QoS 1 a consumer, and limits a stream to 1,000 consumers by default.
fn nats_config(address: SocketAddr, folder: &Path, connections: usize) -> String {
    format!(
        "server_name: bench\nlisten: \"127.0.0.1:-1\"\nmax_connections: {}\njetstream {{ store_dir: \"{}\", limits {{ default_max_consumers: -1 }} }}\nmqtt {{ listen: \"{address}\" }}\n",
        connections + 100,
        folder.display()
    )
}

/// Measures each broker; a row without a measurement has the reason.
pub(super) async fn measure(
    directory: &Path,
    options: &GatewayOptions,
    reporter: &dyn Reporter,
) -> Vec<BrokerRow> {
    let mut rows = Vec::new();
    for kind in &KINDS {
        let measured = match kind.find(options) {
            Ok(program) => one(kind, &program, directory, options, reporter).await,
            Err(missing) => Err(missing),
        };
        let measured = measured.map_err(|error| format!("{error:#}"));
        if let Err(missing) = &measured {
            reporter.line(&format!("{}: {missing}", kind.name));
        }
        rows.push(BrokerRow { name: kind.name, measured });
    }
    rows
}

async fn one(
    kind: &BrokerKind,
    program: &Path,
    directory: &Path,
    options: &GatewayOptions,
    reporter: &dyn Reporter,
) -> anyhow::Result<(String, ConnectionRow)> {
    let version = kind.version(program)?;
    reporter.line(&format!("{}: {version}", kind.name));
    let address = free_address()?;
    let mut broker = kind.start(program, address, directory, options.connections)?;
    until_listening(&mut broker, address).await?;
    let logins: Vec<DeviceLogin> = (0..options.connections).map(login).collect();
    let at = DeviceServer { address, authority: None };
    let devices = DeviceProcesses::start(directory, kind.name, &at, &logins, options.processes).await?;
    let publisher = Publisher::Mqtt(MqttPublisher::connect(address).await?);
    let mut trial = DeviceTrial::new(devices, publisher, broker.id());
    let mut row = trial.connections(reporter).await?;
    row.add(trial.messages_to_all(options, reporter).await?);
    Ok((version, row))
}

fn login(place: usize) -> DeviceLogin {
    DeviceLogin {
        client_id: format!("bench-{place}"),
        user: "bench".to_owned(),
        password: "bench".to_owned(),
        filter: BROKER_TOPIC.to_owned(),
    }
}

async fn until_listening(broker: &mut ChildProcess, address: SocketAddr) -> anyhow::Result<()> {
    let started = Instant::now();
    while TcpStream::connect(address).await.is_err() {
        broker.check_alive()?;
        anyhow::ensure!(started.elapsed() < START_LIMIT, "it does not start: {}", broker.log_end());
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

impl BrokerKind {
    fn find(&self, options: &GatewayOptions) -> anyhow::Result<PathBuf> {
        anyhow::ensure!(options.brokers == BrokerChoice::All, "left out by --rivals none");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = std::env::split_paths(&path).chain(SYSTEM_FOLDERS.map(PathBuf::from));
        let mut places = options.broker_folder.iter().cloned().chain(places);
        let found = places.find_map(|folder| Some(folder.join(self.program)).filter(|file| file.is_file()));
        found.with_context(|| format!("no {} here: docs/lab/bench.md says how it is installed", self.program))
    }

    /// Returns the first line of the program's version output.
    fn version(&self, program: &Path) -> anyhow::Result<String> {
        let version_output = Command::new(program).arg(self.version_argument).output();
        let version_output =
            version_output.with_context(|| format!("{} cannot be run", program.display()))?;
        let text = String::from_utf8_lossy(&version_output.stdout);
        Ok(text.lines().next().unwrap_or_default().trim().to_owned())
    }

    fn start(
        &self,
        program: &Path,
        address: SocketAddr,
        directory: &Path,
        connections: usize,
    ) -> anyhow::Result<ChildProcess> {
        let folder = directory.join(self.name);
        std::fs::create_dir_all(&folder)?;
        let file = folder.join("config");
        std::fs::write(&file, (self.config)(address, &folder, connections))?;
        let mut command = Command::new(program);
        command.arg(self.config_argument).arg(&file);
        ChildProcess::spawn(self.name, command, &folder.join("log"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_broker_is_told_where_to_listen_and_how_many_may_come() {
        let address: SocketAddr = "127.0.0.1:18830".parse().expect("an address");
        for kind in &KINDS {
            let config = (kind.config)(address, Path::new("/tmp/of-the-broker"), 500);
            assert!(config.contains("18830") && config.contains("600"), "{config}");
        }
    }
}
