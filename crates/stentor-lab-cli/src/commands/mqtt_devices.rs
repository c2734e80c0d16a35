//! `stentor lab mqtt-devices`: devices of a bench, as a process of their own, so that the system counts their processor time.

use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// Hold devices that speak MQTT, for a bench that has started this
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  stentor lab mqtt-devices --settings devices.json")]
pub(crate) struct MqttDevicesArgs {
    /// Settings file, written by the bench
    #[arg(long, value_name = "FILE")]
    settings: PathBuf,
}

impl MqttDevicesArgs {
    /// Serves the bench until it closes its connection.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        stentor_terminal::process::end_with_parent();
        crate::device_load::run(&self.settings)?;
        Ok(ExitCode::SUCCESS)
    }
}
