//! Thousands of devices of our own: what an idle one costs, how fast a message reaches them all, and whether any is missed. What
//! others cost with the same devices and messages is measured beside it.

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

/// Files that a server has open beside its connections.
const FILES_BESIDE_MAX_COUNT: u64 = 400;

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct GatewayOptions {
    /// Connections held at the same time.
    pub(crate) connections: usize,
    /// Processes that hold the devices.
    pub(crate) processes: usize,
    /// How many messages go to all devices, one after the other.
    pub(crate) rounds: u32,
    /// How many messages go to all devices at once, after that.
    pub(crate) burst: u32,
    /// Messages to single devices in a second.
    pub(crate) singles_per_second: u32,
    /// For how many seconds.
    pub(crate) singles_seconds: u32,
    /// What is measured beside the gateway.
    pub(crate) brokers: BrokerChoice,
    /// Where brokers may be that the system has not installed.
    pub(crate) broker_folder: Option<PathBuf>,
    /// The commit that was built.
    pub(crate) commit: &'static str,
}

/// Measures it and returns the report.
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
            format!("a process may have {limit} files open here: ask for at most --connections {most}");
        Err(CommandFailure::usage(sentence).into())
    }
}
