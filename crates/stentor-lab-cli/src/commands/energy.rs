//! `stentor lab energy`: energy, measured by a meter, imported, or modelled; every figure names its kind.

mod battery;
mod import;
mod measure;
mod model;
mod phases;
mod port;
mod record;
mod traffic;

use clap::{Args, Subcommand};
use std::process::ExitCode;
use stentor_lab::energy::{CAVEATS, EnergyValue};
use stentor_terminal::output::{Output, table};

/// Energy: measured, imported, or modelled from a packet trace; every figure names its kind
#[derive(Debug, Args)]
pub(crate) struct EnergyArgs {
    #[command(subcommand)]
    command: EnergyCommand,
}

#[derive(Debug, Subcommand)]
enum EnergyCommand {
    Measure(measure::MeasureArgs),
    Record(record::RecordArgs),
    Import(import::EnergyImportArgs),
    Phases(phases::PhasesArgs),
    Model(model::ModelArgs),
    Battery(battery::BatteryArgs),
    ImportLog(import::ImportLogArgs),
}

impl EnergyArgs {
    /// Runs it.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        match self.command {
            EnergyCommand::Measure(measure) => measure.run(output).await,
            EnergyCommand::Record(record) => record.run(output).await,
            EnergyCommand::Import(import) => import.run(output),
            EnergyCommand::Phases(phases) => phases.run(output),
            EnergyCommand::Model(model) => model.run(output),
            EnergyCommand::Battery(battery) => battery.run(output),
            EnergyCommand::ImportLog(log) => log.run(output),
        }
    }
}

/// Formats values as a table: component, joules, watts, and method.
fn values(values: &[EnergyValue]) -> String {
    let rows = values.iter().map(|value| {
        let number = |number: Option<f64>| number.map_or_else(|| "unresolved".into(), short);
        [
            value.component.clone(),
            number(value.joule),
            number(value.watt),
            value.kind.word().to_owned(),
            value.model.clone(),
        ]
    });
    table(["component", "joule", "watt", "kind", "meter or model"], rows)
}

/// Formats the leading facts, one a line in this order; empty ones are left out.
fn facts(facts: &[(&str, String)]) -> String {
    let shown = || facts.iter().filter(|(_, fact)| !fact.is_empty());
    let width = shown().map(|(name, _)| name.len()).max().unwrap_or(0);
    shown().map(|(name, fact)| format!("{name:width$}  {fact}")).collect::<Vec<_>>().join("\n")
}

/// Writes a number with four significant digits.
fn short(number: f64) -> String {
    let decimals = match number.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        size if size >= 1.0 || size == 0.0 => 3,
        _ => 4,
    };
    format!("{number:.decimals$}")
}

/// Returns the caveats of a model's figures.
fn caveats() -> String {
    let lines = CAVEATS.map(|caveat| format!("  - {caveat}"));
    format!("To be known:\n{}", lines.join("\n"))
}
