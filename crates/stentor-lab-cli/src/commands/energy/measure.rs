//! `stentor lab energy measure`: this machine's own meters, while a command runs or for some seconds.

use anyhow::Context;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use stentor_lab::energy::measured::{SYS, Sensor, Unusable, find};
use stentor_lab::energy::{EnergySide, EnergySource, EnergyValue};
use stentor_lab::subject::clock::monotonic_ns;
use stentor_terminal::failure::CommandFailure;
use stentor_terminal::output::{Output, note};

/// Read this machine's own meters: powercap, a battery, INA219 and its family
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab energy measure --list
  sudo stentor lab energy measure --seconds 10
  sudo stentor lab energy measure --rate 20 --json -- ./work

Figures are of the whole machine, with everything that runs on it. Zones overlap (a core is part of its package): do not add
them. powercap needs root since Linux 5.10, and always shows less than a meter at the wall. A battery counts only while it is
not charging.")]
pub(super) struct MeasureArgs {
    /// List the meters and end
    #[arg(long)]
    list: bool,
    /// Time of reading if there is no command
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    seconds: u64,
    /// Readings per second
    #[arg(long, default_value_t = 10, value_name = "RATE", value_parser = clap::value_parser!(u64).range(1..=1000))]
    rate: u64,
    /// Directory of the kernel's devices
    #[arg(long, default_value = SYS, value_name = "DIR", hide = true)]
    sys: PathBuf,
    /// Command to run during the measurement
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl MeasureArgs {
    pub(super) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let (sensors, unusable) = find(&self.sys);
        if self.list {
            return list(&sensors, &unusable, output);
        }
        for one in &unusable {
            note(&format!("stentor: not read: {}", one.problem));
        }
        if sensors.is_empty() {
            let problem = "this machine has no meter that can be read: see `energy measure --list`, record a serial meter with `energy record`, or model with `energy model`";
            return Err(CommandFailure::not_done(problem).into());
        }
        let (values, code) = self.measure(sensors).await?;
        let object = json!({ "values": values, "exit_code": code });
        output.result(&object, || super::values(&values))?;
        Ok(if code.unwrap_or_default() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    async fn measure(&self, mut sensors: Vec<Sensor>) -> anyhow::Result<(Vec<EnergyValue>, Option<i32>)> {
        let read =
            |sensors: &mut Vec<Sensor>| sensors.iter_mut().try_for_each(|one| one.read(monotonic_ns()));
        read(&mut sensors)?;
        let mut ended = Box::pin(self.end());
        let mut ticks = tokio::time::interval(Duration::from_nanos(1_000_000_000 / self.rate));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        ticks.tick().await;
        let code = loop {
            tokio::select! {
                code = &mut ended => break code?,
                _ = ticks.tick() => read(&mut sensors)?,
            }
        };
        read(&mut sensors)?;
        let sources = sensors.into_iter().map(Sensor::finish).collect::<Result<Vec<_>, _>>()?;
        Ok((sources.iter().filter_map(|source| source.value(EnergySide::Machine)).collect(), code))
    }

    /// Completes with the exit code when the command ends, or after the given seconds.
    async fn end(&self) -> anyhow::Result<Option<i32>> {
        let Some((program, arguments)) = self.command.split_first() else {
            tokio::time::sleep(Duration::from_secs(self.seconds)).await;
            return Ok(None);
        };
        // The command's output goes to standard error, so that programs can read the object on the last line.
        let mut child = tokio::process::Command::new(program);
        child.args(arguments).kill_on_drop(true).stdout(std::io::stderr());
        let status = child.status().await.with_context(|| format!("{program} cannot be started"))?;
        Ok(Some(status.code().unwrap_or(1)))
    }
}

fn list(sensors: &[Sensor], unusable: &[Unusable], output: Output) -> anyhow::Result<ExitCode> {
    let usable = sensors.iter().map(|one| json!({ "component": one.component, "model": one.origin.model, "scale": one.origin.coefficients_ref }));
    let not = unusable.iter().map(|one| json!({ "path": one.path, "problem": one.problem }));
    let object = json!({ "meters": usable.collect::<Vec<_>>(), "unusable": not.collect::<Vec<_>>() });
    let summary = || {
        let lines = sensors.iter().map(|one| format!("{}: {}", one.component, one.origin.model));
        let not = unusable.iter().map(|one| format!("not usable: {}", one.problem));
        let lines: Vec<String> = lines.chain(not).collect();
        if lines.is_empty() {
            "this machine has no meter: no powercap, no battery, no power sensor".into()
        } else {
            lines.join("\n")
        }
    };
    output.result(&object, summary)?;
    Ok(ExitCode::SUCCESS)
}
