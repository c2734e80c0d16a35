//! `stentor lab energy import` and `import-log`: measurements of other instruments.

use super::traffic::text;
use super::{facts, short, values};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use stentor_lab::energy::imported::{MeterFile, read};
use stentor_lab::energy::{EnergySide, EnergySource, phone_log, seconds};
use stentor_terminal::failure::CommandFailure;
use stentor_terminal::output::Output;

/// Read a meter's file and integrate V x I dt
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  stentor lab energy import arduino.csv --json

Lines are time, volt, ampere, with `,`, `;` or a tab between them; a header may name time (or time_ms, time_us), volt and
ampere in any order; `#` begins a remark. A bad line is an error. A file that `energy record` wrote counts
as measured, any other file as imported.")]
pub(super) struct EnergyImportArgs {
    /// The file
    file: PathBuf,
}

/// Read a phone's battery log into hours
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab energy import-log discharge.csv
  adb shell dumpsys batterystats --history > history.txt && stentor lab energy import-log history.txt --json

A CSV needs a header with time (seconds; time_ms) and percent (or level); voltage and temperature may be in Android's
units (millivolts, tenths of a degree). A log of a partial discharge is extrapolated at its mean rate, and marked.")]
pub(super) struct ImportLogArgs {
    /// The file
    file: PathBuf,
}

/// Opens a meter's file.
pub(super) fn meter(path: &Path) -> anyhow::Result<MeterFile> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let file = read(&text(path)?, &name);
    Ok(file.map_err(|error| CommandFailure::usage(format!("{}: {error}", path.display())))?)
}

impl EnergyImportArgs {
    pub(super) fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let series = meter(&self.file)?.series;
        let value = series.value(EnergySide::Machine).into_iter().collect::<Vec<_>>();
        let (from, to) = series.span_ns().unwrap_or_default();
        let object = json!({
            "values": value,
            "readings": series.count(),
            "seconds": seconds(to - from),
            "period_ms": seconds(series.period_ns()) * 1e3,
        });
        let summary = || {
            let facts = facts(&[
                ("readings", series.count().to_string()),
                ("seconds", short(seconds(to - from))),
                ("period", format!("{} ms", short(seconds(series.period_ns()) * 1e3))),
            ]);
            format!("{}\n\n{facts}", values(&value))
        };
        output.result(&object, summary)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl ImportLogArgs {
    pub(super) fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let log = phone_log::read(&text(&self.file)?);
        let log = log.map_err(|error| CommandFailure::usage(format!("{}: {error}", self.file.display())))?;
        let mut object = json!(log);
        object["lines"] = json!(log.lines.len());
        let full = match (log.hours_full, log.is_extrapolated) {
            (Some(hours), true) => format!("{} h at the log's mean rate (extrapolated)", short(hours)),
            (Some(hours), false) => format!("{} h", short(hours)),
            (None, _) => "not known: less than one percent was used".into(),
        };
        let range = |range: Option<(f64, f64)>, unit: &str| {
            let text = |(least, greatest)| format!("{} to {} {unit}", short(least), short(greatest));
            range.map(text).unwrap_or_default()
        };
        let seen = format!(
            "{} h, {} % to {} %, {} lines",
            short(log.hours),
            log.from_percent,
            log.to_percent,
            log.lines.len()
        );
        let rows = [
            ("hours", full),
            ("seen", seen),
            ("kind", "imported".into()),
            ("voltage", range(log.volt, "V")),
            ("temperature", range(log.celsius, "degrees")),
        ];
        output.result(&object, || facts(&rows))?;
        Ok(ExitCode::SUCCESS)
    }
}
