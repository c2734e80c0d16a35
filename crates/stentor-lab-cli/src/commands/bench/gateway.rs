//! `stentor lab bench gateway`: devices that are connected to the server itself.

use crate::bench::gateway::{self, BrokerChoice, ConnectionRow, GatewayOptions, GatewayReport};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use stentor_terminal::output::{Output, table};
use stentor_terminal::progress::on_the_terminal;

/// The folder in which the project's own script installs brokers.
const BROKERS: &str = "target/brokers";

/// Connect many devices to the gateway, and measure their cost and the latency of messages to them
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench gateway
  stentor lab bench gateway --connections 19000 --json
  stentor lab bench gateway --rivals none
  lab/brokers/install

Devices speak MQTT 3.1.1 over loopback, in processes of their own, and confirm each message (QoS 1). A message to all is a campaign
to everyone; every delivery is counted at its device, and every receipt in the ledger. Then single messages go to random devices,
the server is killed with a message under way, and the connections are made once more over TLS. Brokers get the same devices and
messages. The exit code is 0 when nothing was lost.")]
pub(crate) struct GatewayBenchArgs {
    /// Connections at the same time; each is an open file of the server
    #[arg(long, default_value_t = 5_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=200_000))]
    connections: u64,
    /// Processes that hold the devices
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    processes: u64,
    /// Messages to all, one after the other
    #[arg(long, default_value_t = 9, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Messages to all at once, after those; at most as many as a device may have unconfirmed
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=20))]
    burst: u32,
    /// Messages to single devices in a second
    #[arg(long, default_value_t = 1_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    singles_per_second: u32,
    /// Seconds of messages to single devices
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=600))]
    singles_seconds: u32,
    /// Brokers to measure beside the gateway
    #[arg(long, value_enum, default_value_t = BrokerScope::All)]
    rivals: BrokerScope,
    /// Folder of brokers that the system has not installed; otherwise `target/brokers` here or above this program
    #[arg(long, value_name = "DIR")]
    rival_folder: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum BrokerScope {
    /// All that are installed here
    All,
    /// No other server
    None,
}

impl GatewayBenchArgs {
    /// Measures and prints the report.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let report = gateway::run(self.options(), &*on_the_terminal()).await?;
        output.result(&report.object(), || describe(&report))?;
        Ok(super::exit(report.holds()))
    }

    fn options(self) -> GatewayOptions {
        let brokers = match self.rivals {
            BrokerScope::All => BrokerChoice::All,
            BrokerScope::None => BrokerChoice::None,
        };
        GatewayOptions {
            connections: self.connections as usize,
            processes: self.processes as usize,
            rounds: self.rounds,
            burst: self.burst,
            singles_per_second: self.singles_per_second,
            singles_seconds: self.singles_seconds,
            brokers,
            broker_folder: self.rival_folder.or_else(broker_folder),
            commit: env!("STENTOR_COMMIT"),
        }
    }
}

fn broker_folder() -> Option<PathBuf> {
    let (here, program) = (std::env::current_dir().ok(), std::env::current_exe().ok());
    let places = here.iter().chain(&program).flat_map(|place| place.ancestors());
    places.map(|place: &Path| place.join(BROKERS)).find(|folder| folder.is_dir())
}

fn describe(report: &GatewayReport) -> String {
    let header =
        ["", "connects/s", "bytes, idle", "deliveries/s", "last, ms", "10 at once/s", "CPU s/1000", "lost"];
    let mut rows = vec![row("Stentor", &report.clear)];
    rows.extend(report.tls.as_ref().map(|tls| row("Stentor, TLS", tls)));
    for (name, measured) in report.rivals() {
        rows.extend(measured.ok().map(|measured| row(name, measured)));
    }
    let (lost, missing) = report.lost();
    let p99 = report.singles.as_ref().and_then(|one| one.latency_ms.quantile(0.99)).unwrap_or_default();
    let back = report.storm.as_ref().map_or(0.0, |storm| storm.seconds_from_start);
    let summary = format!(
        "single messages: p99 {p99:.1} ms; all back {back:.2} s after a restart; {lost} lost, {missing} receipts missing"
    );
    let missing = report.rivals().filter_map(|(name, row)| Some(format!("\n{name}: {}", row.err()?)));
    format!("{}\n{summary}{}", table(header, rows.into_iter()), missing.collect::<String>())
}

fn row(name: &str, row: &ConnectionRow) -> [String; 8] {
    let to_all = row.to_all.clone().unwrap_or_default();
    let median = |samples: &stentor_lab::statistics::Samples, digits: usize| {
        samples.quantile(0.5).map_or_else(String::new, |value| format!("{value:.digits$}"))
    };
    [
        name.to_owned(),
        format!("{:.0}", row.per_second),
        format!("{:.0}", row.idle_bytes),
        median(&to_all.rates, 0),
        median(&to_all.last_ms, 1),
        median(&to_all.burst_rates, 0),
        format!("{:.4}", to_all.server_cpu_per_thousand),
        to_all.lost.to_string(),
    ]
}
