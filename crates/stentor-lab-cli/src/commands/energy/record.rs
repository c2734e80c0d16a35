//! `stentor lab energy record`: a serial meter's lines, with this machine's clock beside them.

use super::port::SerialPort;
use super::{facts, short, values};
use anyhow::Context;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use stentor_lab::energy::meter::{MeterRecorder, Recording, TimeUnit, each_line};
use stentor_lab::energy::{EnergyError, EnergyKind, EnergyOrigin, EnergySide, EnergyValue};
use stentor_lab::subject::clock::monotonic_ns;
use stentor_terminal::failure::CommandFailure;
use stentor_terminal::output::{Output, note};

/// Share of readings that may be missing without a remark.
const RATE_TOLERANCE: f64 = 0.05;

/// Record a serial meter that prints lines of time, volt, ampere
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab energy record --port /dev/ttyUSB0 --rate 170 --out meter.csv
  stentor lab energy record --port /dev/ttyACM0 --rate 170 --time-unit ms --seconds 600 --out meter.csv --json

Ends when the meter disconnects, after --seconds, or when interrupted; the readings until then are kept. Each line gets the
time of this machine's monotonic clock, so that `energy phases` can join it with a subject's samples.")]
pub(super) struct RecordArgs {
    /// The serial port
    #[arg(long, value_name = "PATH")]
    port: PathBuf,
    /// Readings per second of the meter
    #[arg(long, value_name = "RATE")]
    rate: f64,
    /// File for the readings
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Speed of the port
    #[arg(long, default_value_t = 115_200, value_name = "BAUD")]
    baud: u32,
    /// The unit of the meter's time
    #[arg(long, value_enum, default_value = "s")]
    time_unit: UnitName,
    /// When to stop
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum UnitName {
    S,
    Ms,
    Us,
}

impl RecordArgs {
    pub(super) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        if !(self.rate.is_finite() && self.rate > 0.0) {
            return Err(CommandFailure::usage(
                "--rate is how many readings a second the meter gives: more than 0, such as 170",
            )
            .into());
        }
        let stop = Arc::new(AtomicBool::new(false));
        let port = SerialPort::open(&self.port, self.baud, Arc::clone(&stop))?;
        let (unit, rate, path) = (self.unit(), self.rate, self.out.clone());
        let mut recording = tokio::task::spawn_blocking(move || record(port, unit, rate, &path));
        note(&format!("stentor: recording {} to {}", self.port.display(), self.out.display()));
        let end_signal = stentor_terminal::process::asked_to_end()?;
        let enough = Duration::from_secs(self.seconds.unwrap_or(u64::from(u32::MAX)));
        // The recording is awaited in any case: only then is its file complete.
        let recording = tokio::select! {
            done = &mut recording => done,
            () = end_signal => { stop.store(true, Ordering::Relaxed); recording.await }
            () = tokio::time::sleep(enough) => { stop.store(true, Ordering::Relaxed); recording.await }
        };
        self.print(recording.context("the recording broke off")??, output)
    }

    const fn unit(&self) -> TimeUnit {
        match self.time_unit {
            UnitName::S => TimeUnit::Seconds,
            UnitName::Ms => TimeUnit::Milliseconds,
            UnitName::Us => TimeUnit::Microseconds,
        }
    }

    fn print(&self, recording: Recording, output: Output) -> anyhow::Result<ExitCode> {
        if recording.readings < 2 {
            let problem = "fewer than two readings came: check --baud and that lines are time, volt, ampere";
            let problem = format!("{problem} ({} other lines)", recording.lines_refused);
            return Err(CommandFailure::not_done(problem).into());
        }
        let model = format!("serial meter at {}", self.port.display());
        let origin =
            EnergyOrigin::new(EnergyKind::Measured, model, "V x I dt by trapezoids, scaled by the meter");
        let value =
            [EnergyValue::of("board", EnergySide::Machine, recording.joule, recording.seconds, &origin)];
        let rate = recording.rate().unwrap_or_default();
        let is_slow = rate < self.rate * (1.0 - RATE_TOLERANCE);
        let object = json!({
            "values": value,
            "readings": recording.readings,
            "seconds": recording.seconds,
            "rate": rate,
            "rate_wanted": self.rate,
            "slow": is_slow,
            "gaps": recording.gaps,
            "lines_refused": recording.lines_refused,
            "file": self.out,
        });
        let summary = || {
            let slow = if is_slow { ", less than the meter should give" } else { "" };
            let facts = facts(&[
                ("readings", recording.readings.to_string()),
                ("seconds", short(recording.seconds)),
                ("rate", format!("{} a second{slow}", short(rate))),
                ("gaps", recording.gaps.to_string()),
                ("other lines", recording.lines_refused.to_string()),
                ("file", self.out.display().to_string()),
            ]);
            format!("{}\n\n{facts}", values(&value))
        };
        output.result(&object, summary)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn record(port: SerialPort, unit: TimeUnit, rate: f64, path: &std::path::Path) -> anyhow::Result<Recording> {
    let file =
        std::fs::File::create(path).with_context(|| format!("{} cannot be written", path.display()))?;
    let written = |error| EnergyError::io(path.display().to_string())(error);
    let mut recorder = MeterRecorder::start(file, unit, rate).map_err(written)?;
    each_line(BufReader::new(port), |line| recorder.line(line, monotonic_ns()).map_err(written))?;
    Ok(recorder.finish().map_err(written)?)
}
