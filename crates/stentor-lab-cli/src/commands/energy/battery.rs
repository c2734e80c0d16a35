//! `stentor lab energy battery`: the life of a battery in hours, while the exchanges of a trace are repeated.

use super::traffic::{ProcessorOptions, TraceOptions, device};
use super::{caveats, facts, short};
use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use stentor_lab::energy::battery::{
    BatteryCell, BatteryEstimate, CELSIUS, Discharge, LOG_EVERY_S, MAH_OF_NEXUS_7, THOUSAND,
};
use stentor_lab::energy::exchanges::TraceExchanges;
use stentor_lab::energy::phone_log::LogLine;
use stentor_lab::energy::{CAVEATS, EnergySide, EnergyValue, nanoseconds, radio};
use stentor_terminal::failure::CommandFailure;
use stentor_terminal::output::{Output, table};
use stentor_terminal::progress::PhaseProgress;

/// Seconds of a millisecond.
const MILLISECOND_S: f64 = 1e-3;
/// Seconds of an hour.
const HOUR_S: f64 = 3600.0;
/// The scope of the model, printed with every answer.
const MODELLED: [&str; 4] = [
    "the radio's states are simulated packet by packet until the cell is empty; nothing was measured",
    "the cell's voltage without a load is a curve for lithium-polymer cells in general (Zephyr, after Analog Devices AN4189); its 0.1 ohm inside are our assumption",
    "the temperature in the log is constant (27.5 degrees); age, self-discharge and the share that a phone keeps back are not modelled",
    "screen, processor and system are only in it as far as --base-watt and --cpu-ms say; without them the hours are an upper bound",
];

/// Simulate the life of a battery in hours while the exchange of a trace is repeated
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab energy battery --trace rest.pcap --radio wifi-s2
  stentor lab energy battery --trace rest.pcap --radio lte --base-watt 0.3 --out discharge.csv --json
  stentor lab energy battery --trace quick.pcap --radio wifi-s2 --captured-every-ms 50

An exchange begins where the side that sent the first packet sends again, about --captured-every-ms after the one before. Exchanges
are repeated each --period-ms, with a delay of up to --jitter-ms, until the cell is empty. If the trace is repeated more slowly than
it was captured, no exchange may take longer than --captured-every-ms. This is done --runs times, then once with all coefficients
low and once with all high, for the band. The log has a line for every 3 minutes with percent, voltage and temperature.")]
pub(super) struct BatteryArgs {
    #[command(flatten)]
    traffic: TraceOptions,
    #[command(flatten)]
    processor: ProcessorOptions,
    /// Charge of the full cell in milliampere hours; 4325 is the Nexus 7
    #[arg(long, default_value_t = MAH_OF_NEXUS_7, value_name = "MAH")]
    cell_mah: f64,
    /// Milliseconds from one exchange to the next
    #[arg(long, default_value_t = 500, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=86_400_000))]
    period_ms: u32,
    /// Milliseconds from one exchange to the next in the trace, if it was captured at another rate
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=86_400_000))]
    captured_every_ms: Option<u32>,
    /// Largest delay of the beginning of an exchange, in milliseconds
    #[arg(long, default_value_t = 20, value_name = "MS")]
    jitter_ms: u32,
    /// Number of discharges to simulate with the source's coefficients
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Seed of the jitter of the first run
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// Constant power of the rest of the phone, in watts
    #[arg(long, default_value_t = 0.0, value_name = "WATT")]
    base_watt: f64,
    /// CPU milliseconds of an exchange; needs --processor or --cpu-watt
    #[arg(long, value_name = "MS")]
    cpu_ms: Option<f64>,
    /// File for the logs of all runs, as CSV
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl BatteryArgs {
    pub(super) fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let traffic = self.traffic.open()?;
        let cpu_w = self.cpu_watt()?;
        let milliseconds = |number: u32| nanoseconds(f64::from(number) * MILLISECOND_S);
        let usage = |error: stentor_lab::energy::EnergyError| CommandFailure::usage(error.to_string());
        let period_ns = milliseconds(self.period_ms);
        let captured_every_ns = milliseconds(self.captured_every_ms.unwrap_or(self.period_ms));
        let exchanges =
            TraceExchanges::recognised(&traffic.trace, captured_every_ns, period_ns).map_err(usage)?;
        let discharge = Discharge {
            model: &traffic.model,
            exchanges: &exchanges,
            period_ns,
            jitter_ns: milliseconds(self.jitter_ms),
            cell: BatteryCell::full(self.cell_mah).map_err(usage)?,
            base_w: self.base_watt + cpu_w,
        };
        let mut progress = PhaseProgress::start("discharge", u64::from(self.runs + 2) * THOUSAND);
        let answer = discharge.answer(self.seed, self.runs, |done| progress.update(done)).map_err(usage)?;
        progress.finish(u64::from(self.runs + 2) * THOUSAND);
        if let Some(path) = &self.out {
            std::fs::write(path, csv(&answer))
                .with_context(|| format!("{} cannot be written", path.display()))?;
        }
        let mut object = self.object(&traffic.model.id, &answer, cpu_w);
        object["device"] = json!(device(&traffic));
        object["values"] = json!(figures(&answer, &discharge));
        output.result(&object, || describe(&object, &answer))?;
        Ok(ExitCode::SUCCESS)
    }

    fn cpu_watt(&self) -> anyhow::Result<f64> {
        let is_power = |value: f64| value.is_finite() && (0.0..=1e4).contains(&value);
        if !is_power(self.base_watt) || !is_power(self.cpu_ms.unwrap_or_default()) {
            return Err(
                CommandFailure::usage("--base-watt and --cpu-ms must be numbers from 0 to 10000").into()
            );
        }
        let Some(cpu_ms) = self.cpu_ms else { return Ok(0.0) };
        let unknown = || CommandFailure::usage("--cpu-ms needs --processor or --cpu-watt");
        let processor = self.processor.open()?.ok_or_else(unknown)?;
        Ok(cpu_ms / f64::from(self.period_ms) * processor.watt.value)
    }

    fn object(&self, radio: &str, answer: &BatteryEstimate, cpu_w: f64) -> Value {
        json!({
            "radio": radio,
            "kind": "modelled",
            "hours": answer.hours,
            "hours_of_runs": answer.hours_of_runs,
            "hours_band": answer.hours_band,
            "cell_mah": self.cell_mah,
            "period_ms": self.period_ms,
            "captured_every_ms": self.captured_every_ms.unwrap_or(self.period_ms),
            "jitter_ms": self.jitter_ms,
            "base_watt": self.base_watt,
            "cpu_watt": cpu_w,
            "log_every_seconds": LOG_EVERY_S,
            "log_celsius": CELSIUS,
            "log": self.out,
            "runs": answer.runs,
            "modelled": MODELLED,
            "caveats": CAVEATS,
        })
    }
}

/// Returns the energy of the first run as values.
fn figures(answer: &BatteryEstimate, discharge: &Discharge<'_>) -> Vec<EnergyValue> {
    let origin = radio::origin(discharge.model);
    let of = |run: &stentor_lab::energy::battery::DischargeRun| {
        EnergyValue::of("radio", EnergySide::Client, run.radio_joule, run.hours * HOUR_S, &origin)
    };
    answer.runs.iter().take(1).map(of).collect()
}

fn describe(object: &Value, answer: &BatteryEstimate) -> String {
    let word = |name: &str| stentor_terminal::output::cell(&object[name]);
    let (runs, band) = (answer.hours_of_runs, answer.hours_band);
    let head = facts(&[
        ("hours", format!("{:.2} (runs: {:.3} to {:.3})", answer.hours, runs.0, runs.1)),
        ("band", format!("{:.2} to {:.2} with all coefficients high, or low", band.0, band.1)),
        ("kind", "modelled, nothing was measured".into()),
        ("radio", word("radio")),
        ("device", word("device")),
        ("log", word("log")),
    ]);
    let rows = answer.runs.iter().map(|run| {
        let watt = run.radio_joule / (run.hours * HOUR_S);
        let coefficients = format!("{:?}", run.bound).to_lowercase();
        [
            run.seed.to_string(),
            coefficients,
            format!("{:.3}", run.hours),
            run.exchanges.to_string(),
            short(watt),
            short(run.base_joule),
        ]
    });
    let runs = table(["seed", "coefficients", "hours", "exchanges", "radio W", "rest J"], rows);
    let modelled = MODELLED.map(|line| format!("  - {line}")).join("\n");
    format!("{head}\n\n{runs}\n\nWhat is modelled:\n{modelled}\n\n{}", caveats())
}

fn csv(answer: &BatteryEstimate) -> String {
    let mut text = String::from("run,seed,coefficients,seconds,percent,voltage,temperature\n");
    for (place, run) in answer.runs.iter().enumerate() {
        let bound = format!("{:?}", run.bound).to_lowercase();
        for LogLine { seconds, percent, volt, celsius } in &run.log {
            let (volt, celsius) = (volt.unwrap_or_default(), celsius.unwrap_or_default());
            let _ = writeln!(
                text,
                "{},{},{bound},{seconds:.0},{percent:.2},{volt:.3},{celsius}",
                place + 1,
                run.seed
            );
        }
    }
    text
}
