//! Thousands of devices of our own: the cost of an idle device, the time until a message reaches all of them, and a count of missed
//! messages. Brokers are measured beside it with the same devices and messages.

mod brokers;
mod messages_to_all;
mod publisher;
mod report;
mod setting;
mod singles;
mod storm;
mod tls;

use messages_to_all::DeviceTrial;
use rustix::process::{Resource, getrlimit};
use setting::GatewaySetting;
use std::path::PathBuf;
use stentor_stage::failure::CommandFailure;
use stentor_stage::reporter::Reporter;

pub(crate) use brokers::BrokerChoice;
pub(crate) use report::{ConnectionRow, GatewayReport};

/// Limit of a server's open files beside its connections.
const FILES_BESIDE_MAX_COUNT: u64 = 400;

/// Options of the bench.
#[derive(Clone, Debug)]
pub(crate) struct GatewayOptions {
    /// Connections held at the same time.
    pub(crate) connections: usize,
    /// Processes that hold the devices.
    pub(crate) processes: usize,
    /// Number of messages to all devices, one after the other.
    pub(crate) rounds: u32,
    /// Number of messages to all devices at once, after those.
    pub(crate) burst: u32,
    /// Rate of messages to single devices, per second.
    pub(crate) singles_per_second: u32,
    /// Duration of the messages to single devices, in seconds.
    pub(crate) singles_seconds: u32,
    /// Brokers to measure beside the gateway.
    pub(crate) brokers: BrokerChoice,
    /// Folder of brokers that are not installed on the system.
    pub(crate) broker_folder: Option<PathBuf>,
    /// The commit of the build.
    pub(crate) commit: &'static str,
}

/// Runs the bench and returns the report.
pub(crate) async fn run(options: GatewayOptions, reporter: &dyn Reporter) -> anyhow::Result<GatewayReport> {
    options.check()?;
    let directory = tempfile::Builder::new().prefix("stentor-lab-").tempdir()?;
    let load_before = stentor_stage::child_process::load_average();
    let mut setting = GatewaySetting::start(directory.path(), &options).await?;
    reporter.line(&format!("{} devices are registered", options.connections));
    let mut report = GatewayReport::of(&options, load_before);
    {
        let mut trial = DeviceTrial::of_gateway(&mut setting, directory.path(), "clear", &options).await?;
        report.clear = trial.connections(reporter).await?;
        report.clear.add(trial.messages_to_all(&options, reporter).await?);
        report.singles = Some(trial.singles(&setting, &options, reporter).await?);
        report.storm = Some(trial.storm(&mut setting, reporter).await?);
    }
    report.tls = Some(tls::measure(&mut setting, directory.path(), &options, reporter).await?);
    drop(setting);
    report.rivals = brokers::measure(directory.path(), &options, reporter).await;
    Ok(report)
}

impl GatewayOptions {
    fn check(&self) -> anyhow::Result<()> {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let wanted = self.connections as u64 + FILES_BESIDE_MAX_COUNT;
        if wanted <= limit {
            return Ok(());
        }
        let most = limit.saturating_sub(FILES_BESIDE_MAX_COUNT);
        let sentence =
            format!("a process may have {limit} files open here: use at most --connections {most}");
        Err(CommandFailure::usage(sentence).into())
    }
}
