//! `stentor lab bench http2`: the sender beside h2load, against one sink, in turns.

use super::sink::Sink;
use crate::failure::Failure;
use crate::output::{Output, note, table};
use anyhow::Context;
use clap::Args;
use procfs::Current as _;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;
use stentor_lab::load::Load;
use stentor_lab::statistics::{Samples, Summary};
use stentor_stage::child::{Child, Usage};

const RUN_LIMIT: Duration = Duration::from_secs(120);

/// Compare the sender with h2load: the same requests to the same sink over as many connections and streams
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench http2
  stentor lab bench http2 --rounds 9 --requests 2000000 --json

Needs h2load (Debian: apt-get install nghttp2-client). Each round runs both, as fresh processes one after the other; the
ratios are those of the medians. Processor time is what the system counted for each process.")]
pub(crate) struct Http2 {
    /// Requests of each run, every one to a token of its own
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..=10_000_000))]
    requests: u64,
    /// How often both are run
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Connections side by side
    #[arg(long, default_value_t = 4, value_name = "N")]
    connections: usize,
    /// Requests in flight on each connection
    #[arg(long, default_value_t = 250, value_name = "N")]
    streams: usize,
}

/// What the rounds of one program gave.
#[derive(Default)]
struct Runs {
    requests_per_second: Samples,
    cpu_microseconds: Samples,
    sink_cpu_microseconds: Samples,
    peak_rss_bytes: u64,
}

impl Runs {
    fn push(&mut self, requests: u64, rate: f64, usage: Usage, sink_cpu_seconds: f64) {
        let each = 1e6 / requests as f64;
        self.requests_per_second.push(rate);
        self.cpu_microseconds.push(usage.cpu_seconds * each);
        self.sink_cpu_microseconds.push(sink_cpu_seconds * each);
        self.peak_rss_bytes = self.peak_rss_bytes.max(usage.peak_rss_bytes);
    }

    fn object(&self) -> Value {
        json!({
            "requests_per_second": self.requests_per_second.summary(),
            "cpu_microseconds_per_request": self.cpu_microseconds.summary(),
            "sink_cpu_microseconds_per_request": self.sink_cpu_microseconds.summary(),
            "peak_rss_bytes": self.peak_rss_bytes,
            "samples": {
                "requests_per_second": self.requests_per_second.values(),
                "cpu_microseconds_per_request": self.cpu_microseconds.values(),
            },
        })
    }

    fn row(&self, name: &str) -> [String; 5] {
        let cell = |samples: &Samples, digits: usize| {
            samples.summary().map_or_else(String::new, |Summary { median, min, max, .. }| {
                format!("{median:.digits$} ({min:.digits$} to {max:.digits$})")
            })
        };
        [
            name.to_owned(),
            cell(&self.requests_per_second, 0),
            cell(&self.cpu_microseconds, 3),
            cell(&self.sink_cpu_microseconds, 3),
            format!("{:.0} MB", self.peak_rss_bytes as f64 / 1e6),
        ]
    }
}

impl Http2 {
    /// Measures both and compares them.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let directory = tempfile::Builder::new().prefix("stentor-lab-").tempdir()?;
        let mut sink = Sink::start(directory.path(), self.streams).await?;
        let h2load = H2load::prepare(&self, &sink, directory.path())?;
        let (mut ours, mut theirs) = (Runs::default(), Runs::default());
        for round in 1..=self.rounds {
            self.send(&mut sink, directory.path(), &mut ours)?;
            h2load.run(&self, &mut sink, directory.path(), &mut theirs)?;
            note(&format!("round {round} of {}", self.rounds));
        }
        sink.stop();
        let (rate, cpu) = (
            ratio(&ours.requests_per_second, &theirs.requests_per_second),
            ratio(&ours.cpu_microseconds, &theirs.cpu_microseconds),
        );
        let middle = |samples: &Samples| samples.quantile(0.5);
        let object = json!({
            "h2load_rate_ratio": rate,
            "h2load_cpu_ratio": cpu,
            "requests_per_second": middle(&ours.requests_per_second),
            "cpu_microseconds_per_request": middle(&ours.cpu_microseconds),
            "requests": self.requests,
            "connections": self.connections,
            "streams": self.streams,
            "rounds": self.rounds,
            "stentor": ours.object(),
            "h2load": theirs.object(),
            "load_average": load_average(),
        });
        output.result(&object, || {
            let header = ["", "requests/s", "CPU us each", "sink's CPU us each", "peak RSS"];
            let rows = [ours.row("stentor"), theirs.row("h2load")];
            format!(
                "{}\n\nrate: {rate:.2} times h2load's; processor time: {cpu:.3} of h2load's",
                table(header, rows)
            )
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn send(&self, sink: &mut Sink, directory: &Path, runs: &mut Runs) -> anyhow::Result<()> {
        let log = directory.join("load.log");
        let _ = std::fs::remove_file(&log);
        let arguments: Vec<OsString> = vec![
            "lab".into(),
            "load".into(),
            "--json".into(),
            "--address".into(),
            sink.address.to_string().into(),
            "--ca".into(),
            sink.ca.clone().into(),
            format!("--requests={}", self.requests).into(),
            format!("--connections={}", self.connections).into(),
            format!("--streams={}", self.streams).into(),
        ];
        let before = sink.usage().cpu_seconds;
        let usage = Child::start("sender", &arguments, &log)?.finish(RUN_LIMIT)?;
        let text = std::fs::read_to_string(&log)?;
        let said: Value = serde_json::from_str(text.lines().last().unwrap_or_default())?;
        let rate = said["requests_per_second"].as_f64().unwrap_or(0.0);
        runs.push(self.requests, rate, usage, sink.usage().cpu_seconds - before);
        Ok(())
    }
}

/// The other load generator, ready to run.
struct H2load {
    uris: PathBuf,
    body: PathBuf,
}

impl H2load {
    /// Writes the files that it reads: a URI for every request, and the body.
    fn prepare(bench: &Http2, sink: &Sink, directory: &Path) -> anyhow::Result<Self> {
        let files = Self { uris: directory.join("uris.txt"), body: directory.join("body.json") };
        let mut uris = std::io::BufWriter::new(std::fs::File::create(&files.uris)?);
        for number in 0..bench.requests {
            writeln!(uris, "https://{}{}", sink.address, Load::path(number))?;
        }
        uris.flush()?;
        std::fs::write(&files.body, Load::body())?;
        Ok(files)
    }

    fn run(&self, bench: &Http2, sink: &mut Sink, directory: &Path, runs: &mut Runs) -> anyhow::Result<()> {
        let log = directory.join("h2load.log");
        let _ = std::fs::remove_file(&log);
        let mut command = Command::new("h2load");
        command.arg("-n").arg(bench.requests.to_string());
        command.arg("-c").arg(bench.connections.to_string()).arg("-m").arg(bench.streams.to_string());
        command.arg("-i").arg(&self.uris).arg("-d").arg(&self.body);
        for (name, value) in Load::headers() {
            let mut header = format!("{name}: ");
            let _ = write!(header, "{}", value.to_str().unwrap_or_default());
            command.arg("-H").arg(header);
        }
        let before = sink.usage().cpu_seconds;
        let child = Child::spawn("h2load", command, &log);
        let usage = child.context("h2load is needed: apt-get install nghttp2-client")?.finish(RUN_LIMIT)?;
        let said = std::fs::read_to_string(&log)?;
        let rate = rate_of(&said).ok_or_else(|| {
            Failure::not_done(format!("h2load did not answer every request with success; it said:\n{said}"))
        })?;
        runs.push(bench.requests, rate, usage, sink.usage().cpu_seconds - before);
        Ok(())
    }
}

/// Reads the rate from what h2load says; `None` unless every request succeeded.
fn rate_of(said: &str) -> Option<f64> {
    let all_done = said.lines().find(|line| line.starts_with("requests:"))?;
    if !all_done.contains(" 0 failed, 0 errored, 0 timeout") {
        return None;
    }
    let finished = said.lines().find(|line| line.starts_with("finished in"))?;
    finished.split(',').nth(1)?.trim().strip_suffix(" req/s")?.parse().ok()
}

fn ratio(one: &Samples, other: &Samples) -> f64 {
    match (one.quantile(0.5), other.quantile(0.5)) {
        (Some(one), Some(other)) if other > 0.0 => one / other,
        _ => f64::NAN,
    }
}

/// Returns the system's load, so that a reader knows whether the machine was quiet.
fn load_average() -> Option<f32> {
    procfs::LoadAverage::current().ok().map(|load| load.one)
}
