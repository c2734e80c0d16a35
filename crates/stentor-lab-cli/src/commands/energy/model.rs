//! `stentor lab energy model`: the energy of a radio for a captured trace.

use super::traffic::{ProcessorOptions, RadioTraffic, TraceOptions, device};
use super::{caveats, facts, short, values};
use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use stentor_lab::energy::coefficients::Bound;
use stentor_lab::energy::radio::{RadioTimeline, simulate};
use stentor_lab::energy::trace::Direction;
use stentor_lab::energy::{CAVEATS, EnergySide, EnergySource, EnergyValue, seconds};
use stentor_terminal::failure::CommandFailure;
use stentor_terminal::output::{Output, table};

/// Limit of states in the text output; the file has them all.
const STRETCHES_SHOWN: usize = 12;
/// Limit of states in the object for programs; the file has them all.
const STRETCHES_MAX: usize = 20_000;

/// Model the energy that a radio used for a packet trace: joules by state, and the states over time
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab energy model --trace phone.pcap --radio wifi-s2 --device-address 10.0.0.2
  stentor lab energy model --trace phone.pcap --radio lte --timeline states.csv --json
  stentor lab energy model --trace packets.csv --radio 3g --cpu-seconds 1.8 --processor htc-dream

The radio is idle before the first packet, and the model ends when it is idle again after the last one. Nothing is measured
here: docs/lab/energy.md lists the sources of the coefficients and what the models leave out.")]
pub(super) struct ModelArgs {
    #[command(flatten)]
    traffic: TraceOptions,
    #[command(flatten)]
    processor: ProcessorOptions,
    /// CPU seconds that belong to the trace; their energy is a figure of its own
    #[arg(long, value_name = "SECONDS")]
    cpu_seconds: Option<f64>,
    /// Write all states over time to this file, as CSV
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
}

impl ModelArgs {
    pub(super) fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let traffic = self.traffic.open()?;
        let states = simulated(&traffic, Bound::Value)?;
        let radio = states.value(EnergySide::Client).context("there are no states")?;
        let mut figures = vec![radio];
        figures.extend(self.processor()?);
        let total =
            |bound| anyhow::Ok(simulated(&traffic, bound)?.shares().iter().map(|share| share.joule).sum());
        let band = [total(Bound::Low)?, total(Bound::High)?];
        if let Some(path) = &self.timeline {
            std::fs::write(path, csv(&states))
                .with_context(|| format!("{} cannot be written", path.display()))?;
        }
        let object = object(&traffic, &states, &figures, band);
        output.result(&object, || describe(&traffic, &states, &figures, band, self.timeline.as_deref()))?;
        Ok(ExitCode::SUCCESS)
    }

    fn processor(&self) -> anyhow::Result<Option<EnergyValue>> {
        let Some(cpu_seconds) = self.cpu_seconds else { return Ok(None) };
        if !(cpu_seconds.is_finite() && cpu_seconds >= 0.0) {
            return Err(CommandFailure::usage("--cpu-seconds must be seconds from 0 on").into());
        }
        let unknown = || CommandFailure::usage("--cpu-seconds needs --processor or --cpu-watt");
        Ok(Some(self.processor.open()?.ok_or_else(unknown)?.energy(EnergySide::Client, cpu_seconds)))
    }
}

fn simulated(traffic: &RadioTraffic, bound: Bound) -> anyhow::Result<RadioTimeline> {
    Ok(simulate(&traffic.model, bound, &traffic.trace)
        .map_err(|error| CommandFailure::usage(error.to_string()))?)
}

fn object(traffic: &RadioTraffic, states: &RadioTimeline, figures: &[EnergyValue], band: [f64; 2]) -> Value {
    let (from, to) = states.span_ns().unwrap_or_default();
    let start = traffic.trace.span_ns().map_or(from, |(first, _)| first);
    let timeline = states.stretches().iter().take(STRETCHES_MAX).map(|stretch| {
        json!({
            "state": stretch.state,
            "from_s": seconds(stretch.from_ns - start),
            "to_s": seconds(stretch.to_ns - start),
            "watt": stretch.watt,
        })
    });
    json!({
        "radio": traffic.model.id,
        "kind": "modelled",
        "model": traffic.model.name,
        "coefficients_ref": traffic.model.source,
        "note": traffic.model.note,
        "device": traffic.device,
        "device_guessed": traffic.is_device_guessed,
        "packets": traffic.trace.packets().len(),
        "packets_left_out": traffic.left_out,
        "capture_cut": traffic.is_cut,
        "bytes_up": traffic.trace.bytes(Direction::Up),
        "bytes_down": traffic.trace.bytes(Direction::Down),
        "seconds": seconds(to - from),
        "joule": figures[0].joule,
        "joule_band": band,
        "watt": figures[0].watt,
        "states": states.shares(),
        "values": figures,
        "timeline": timeline.collect::<Vec<_>>(),
        "timeline_cut": states.stretches().len() > STRETCHES_MAX,
        "caveats": CAVEATS,
    })
}

fn describe(
    traffic: &RadioTraffic,
    states: &RadioTimeline,
    figures: &[EnergyValue],
    band: [f64; 2],
    timeline: Option<&Path>,
) -> String {
    let cut = if traffic.is_cut { "; the capture ends within a packet" } else { "" };
    let head = facts(&[
        ("radio", traffic.model.name.clone()),
        ("kind", "modelled, nothing was measured".into()),
        ("band", format!("{} to {} J with all coefficients low, or high", short(band[0]), short(band[1]))),
        ("device", device(traffic)),
        (
            "trace",
            format!(
                "{} packets, {} bytes up, {} down, {} packets left out{cut}",
                traffic.trace.packets().len(),
                traffic.trace.bytes(Direction::Up),
                traffic.trace.bytes(Direction::Down),
                traffic.left_out
            ),
        ),
        ("source", traffic.model.source.clone()),
        ("differs", traffic.model.note.clone()),
    ]);
    let shares = states.shares();
    let all: f64 = shares.iter().map(|share| share.seconds).sum();
    let rows = shares.iter().map(|share| {
        let part = format!("{:.1} %", share.seconds / all.max(f64::MIN_POSITIVE) * 100.0);
        [share.state.word().into(), short(share.seconds), part, short(share.joule)]
    });
    let shared = table(["state", "seconds", "of the time", "joule"], rows);
    format!(
        "{head}\n\n{}\n\n{shared}\n\n{}\n\n{}",
        values(figures),
        stretches(traffic, states, timeline),
        caveats()
    )
}

fn stretches(traffic: &RadioTraffic, states: &RadioTimeline, timeline: Option<&Path>) -> String {
    let start = traffic.trace.span_ns().map_or(0, |(first, _)| first);
    let shown = states.stretches().iter().take(STRETCHES_SHOWN).map(|stretch| {
        let at = |instant: i64| format!("{:.3}", seconds(instant - start));
        [at(stretch.from_ns), at(stretch.to_ns), stretch.state.word().into(), short(stretch.watt)]
    });
    let mut text = table(["from s", "to s", "state", "watt"], shown);
    let more = states.stretches().len().saturating_sub(STRETCHES_SHOWN);
    if more > 0 {
        let place =
            timeline.map_or_else(|| "--timeline FILE writes them".into(), |path| path.display().to_string());
        let _ = write!(text, "\n… and {more} more ({place})");
    }
    text
}

fn csv(states: &RadioTimeline) -> String {
    let mut text = String::from("from_ns,to_ns,state,watt\n");
    for stretch in states.stretches() {
        let _ =
            writeln!(text, "{},{},{},{}", stretch.from_ns, stretch.to_ns, stretch.state.word(), stretch.watt);
    }
    text
}
