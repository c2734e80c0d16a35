//! `stentor lab energy phases`: a meter's readings joined with the phases of a subject's samples.

use super::import::meter;
use super::{caveats, short};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use stentor_lab::energy::phases::{ExchangePhases, PhaseEnergy, energy};
use stentor_lab::energy::{EnergySide, EnergySource, nanoseconds, seconds};
use stentor_terminal::failure::CommandFailure;
use stentor_terminal::output::{Output, note, table};

/// Join a meter's file with a subject's samples: energy of serialize, deserialize, service, others, total
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab energy phases --meter meter.csv --samples client.bin --side client
  stentor lab energy phases --meter other.csv --samples server.bin --side server --offset-seconds 81234.5 --json

Samples are those of LSP-1 (64 bytes each), on the machine's monotonic clock. A file that `energy record` wrote on the same
machine uses that clock too. Any other file needs --offset-seconds: the monotonic clock's time when the meter's clock was zero.
A phase that was ever shorter than the meter's period is unresolved and has no number.")]
pub(super) struct PhasesArgs {
    /// The meter's file
    #[arg(long, value_name = "FILE")]
    meter: PathBuf,
    /// The subject's samples
    #[arg(long, value_name = "FILE")]
    samples: PathBuf,
    /// Side of the samples
    #[arg(long, value_enum)]
    side: SideName,
    /// Seconds to add to the meter's times
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    offset_seconds: Option<f64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SideName {
    Client,
    Server,
}

impl PhasesArgs {
    pub(super) fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let file = meter(&self.meter)?;
        let offset = self.offset_seconds.unwrap_or_default();
        if !offset.is_finite() || offset.abs() > 4e9 {
            return Err(CommandFailure::usage("--offset-seconds is no span of time").into());
        }
        if !file.is_monotonic && self.offset_seconds.is_none() {
            note(
                "stentor: the meter's times are taken as the monotonic clock's; --offset-seconds shifts them",
            );
        }
        let series = file.series.shifted(nanoseconds(offset));
        let side = match self.side {
            SideName::Client => EnergySide::Client,
            SideName::Server => EnergySide::Server,
        };
        let wrong = |error: stentor_lab::energy::EnergyError| CommandFailure::usage(error.to_string());
        let exchanges = ExchangePhases::read(&self.samples, side).map_err(wrong)?;
        let phases = energy(&series, side, &exchanges).map_err(wrong)?;
        let period_ms = seconds(series.period_ns()) * 1e3;
        let object =
            json!({ "side": side, "exchanges": exchanges.len(), "period_ms": period_ms, "phases": phases });
        output.result(&object, || describe(&phases, period_ms))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn describe(phases: &[PhaseEnergy], period_ms: f64) -> String {
    let rows = phases.iter().map(|phase| {
        let number = |number: Option<f64>| number.map_or_else(|| "unresolved".into(), short);
        [
            phase.value.component.clone(),
            number(phase.value.joule),
            number(phase.value.watt),
            number(phase.joule_mean.or(phase.value.joule)),
            phase.times.to_string(),
            short(phase.seconds),
            phase.reason.to_owned(),
        ]
    });
    let header = ["phase", "joule", "watt", "joule each", "times", "seconds", "why not"];
    let kind = phases.first().map_or("", |phase| phase.value.kind.word());
    format!("{kind}, a reading each {} ms\n\n{}\n\n{}", short(period_ms), table(header, rows), caveats())
}
