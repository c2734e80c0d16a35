//! `stentor demo`: a complete campaign with real processes, and a proof at its end.

use crate::failure::{CommandFailure, Exit};
use crate::output::Output;
use crate::process::raise_file_limit;
use crate::progress::on_the_terminal;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use stentor_stage::demo::{self, DemoOptions, DemoReport, GatewayDemoOptions, Kills};
use stentor_stage::devices::{MAX_DEVICES, StagedService, StagedServices};
use stentor_stage::engines::StageQueue;
use stentor_stage::policy::AnswerPolicy;
use stentor_stage::reporter::Reporter;
use stentor_stage::stage::{PushServices, StageOptions};
use stentor_terminal::demo_report::describe;
use stentor_terminal::service_name::{ServiceName, staged};
use stentor_terminal::store_name::StoreName;

/// Number of emulator kills if the server is not killed.
const EMULATOR_KILLS: u32 = 3;

/// Default number of devices, through push services and over our own gateway.
const DEVICES: u64 = 1_000_000;
const GATEWAY_DEVICES: u64 = 10_000;

/// Send one campaign to a million emulated devices and prove where every message went
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor demo
  stentor demo --devices 10000
  stentor demo --devices 100000 --kills 20
  stentor demo --devices 100000 --kills 5 --kill-emulators --json
  stentor demo --devices 100000 --providers fcm,apns,web-push,wns,hms,gcm
  stentor demo --gateway --devices 20000 --kills 5

Starts the server and the emulators as processes of their own on 127.0.0.1, with real TLS and HTTP/2, in a directory
of their own. Exits 0 only if ledger and emulators agree about every token, each delivery is accepted or rejected and none
is lost or stuck, the books balance, and duplicates are marked and stay within the bound that the ledger states.

With --gateway the devices connect to the server itself, over MQTT, and confirm messages while the server is killed.
Exits 0 only if every device got the message, the ledger counts each as delivered, and each duplicate came through
another connection and was not yet confirmed in the ledger when the server was killed.")]
pub(crate) struct DemoArgs {
    /// Number of devices, dealt out evenly to the push services [default: 1000000; 10000 with --gateway]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=MAX_DEVICES))]
    devices: Option<u64>,
    /// The push services
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',', default_values = ["fcm", "apns"])]
    providers: Vec<ServiceName>,
    /// Connect the devices to the server's own gateway instead of sending through push services
    #[arg(long, conflicts_with_all = ["kill_emulators", "policy", "sinks", "providers"])]
    gateway: bool,
    /// Number of kills (kill -9) of the server while the campaign runs
    #[arg(long, default_value_t = 0, value_name = "K", value_parser = clap::value_parser!(u32).range(0..=1000))]
    kills: u32,
    /// Kill the emulators as often as the server; three times without --kills
    #[arg(long)]
    kill_emulators: bool,
    /// Keep all files in this directory; it must be empty or not exist
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Seed that makes tokens, responses and the times of kills repeatable
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// The responses of the emulators
    #[arg(long, value_enum, default_value_t = PolicyName::Realistic)]
    policy: PolicyName,
    /// Response time in milliseconds, or the mean delay of a device's receipt; with --kills the default leaves time for them
    #[arg(long, value_name = "MS")]
    latency_ms: Option<f64>,
    /// The store of the server: its file, or a PostgreSQL server started for the demo
    #[arg(long, value_enum, default_value_t = StoreName::Sqlite, conflicts_with = "gateway")]
    store: StoreName,
    /// The queue of waiting chunks: sqlite, memory, postgres (with --store postgres), nats (a server started for the demo) or the URL of a
    /// nats-server
    #[arg(long, default_value = "sqlite", value_name = "QUEUE", conflicts_with = "gateway")]
    queue: StageQueue,
    /// Use sinks instead of emulators; a sink responds to every push with success, and only counts
    #[arg(long, conflicts_with = "policy")]
    sinks: bool,
    /// Stop if no delivery changed for this time
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    give_up_after_seconds: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PolicyName {
    /// A few dead tokens, a few temporary errors
    Realistic,
    /// Success, always
    AcceptAll,
}

impl From<PolicyName> for AnswerPolicy {
    fn from(name: PolicyName) -> Self {
        match name {
            PolicyName::Realistic => Self::Realistic,
            PolicyName::AcceptAll => Self::AcceptAll,
        }
    }
}

impl DemoArgs {
    /// Runs the demo; the exit code is 0 if the proof holds.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let ended = crate::process::asked_to_end()?;
        let reporter = on_the_terminal();
        let report = tokio::select! {
            report = self.play(&reporter) => report?,
            () = ended => {
                return Err(CommandFailure::new(Exit::Interrupted, "interrupted; every process of the demo is ended").into());
            }
        };
        output.result(&report.object(), || describe(&report))?;
        Ok(if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    async fn play(self, reporter: &Arc<dyn Reporter>) -> anyhow::Result<DemoReport> {
        if self.gateway {
            raise_file_limit();
            demo::run_gateway(&self.gateway_options(), reporter).await
        } else {
            demo::run(&self.options()?, reporter).await
        }
    }

    fn gateway_options(self) -> GatewayDemoOptions {
        GatewayDemoOptions {
            devices: self.devices.unwrap_or(GATEWAY_DEVICES),
            kills: self.kills,
            seed: self.seed,
            keep: self.keep,
            latency: self.latency_ms.map(|ms| Duration::from_secs_f64(ms.max(0.0) / 1_000.0)),
            give_up_after: Duration::from_secs(self.give_up_after_seconds),
        }
    }

    /// Returns the push services; refuses those that cannot do what the other options request.
    fn staged(&self, devices: u64) -> anyhow::Result<StagedServices> {
        let staged = staged(&self.providers, devices)?;
        if self.sinks && staged.as_slice().iter().any(|service| !StagedService::USUAL.contains(service)) {
            return Err(CommandFailure::usage("a sink understands fcm and apns only").into());
        }
        Ok(staged)
    }

    fn options(self) -> anyhow::Result<DemoOptions> {
        let devices = self.devices.unwrap_or(DEVICES);
        let providers = self.staged(devices)?;
        let services =
            if self.sinks { PushServices::Sinks } else { PushServices::Emulators(self.policy.into()) };
        let emulators = match (self.kill_emulators, self.kills) {
            (false, _) => 0,
            (true, 0) => EMULATOR_KILLS,
            (true, kills) => kills,
        };
        let stage = StageOptions {
            devices,
            providers,
            seed: self.seed,
            keep: self.keep,
            services,
            latency_ms: self.latency_ms,
            trouble: None,
            store: self.store.into(),
            nodes: 1,
            queue: self.queue,
        };
        let kills = Kills { server: self.kills, emulators, ..Kills::default() };
        Ok(DemoOptions::new(stage, kills, Duration::from_secs(self.give_up_after_seconds)))
    }
}
