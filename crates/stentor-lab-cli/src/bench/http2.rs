//! The sender beside h2load, against one sink, in turns.

use super::sink::Sink;
use anyhow::Context;
use procfs::Current as _;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use stentor_lab::load::LoadSpec;
use stentor_lab::statistics::Samples;
use stentor_stage::child_process::{ChildProcess, ResourceUsage};
use stentor_stage::failure::CommandFailure;
use stentor_stage::programs::Program;
use stentor_stage::reporter::Reporter;

const RUN_LIMIT: Duration = Duration::from_secs(120);

/// Options of the bench.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Http2Options {
    /// Requests of each run, every one to a token of its own.
    pub(crate) requests: u64,
    /// Number of runs of each program.
    pub(crate) rounds: u32,
    /// Number of concurrent connections.
    pub(crate) connections: usize,
    /// Requests in flight on each connection.
    pub(crate) streams: usize,
}

/// Results of both programs.
pub(crate) struct Http2Report {
    options: Http2Options,
    /// The runs of our sender.
    pub(crate) ours: Runs,
    /// The runs of h2load.
    pub(crate) theirs: Runs,
    /// The system's load at the end, which shows if the machine was quiet.
    load_average: Option<f32>,
}

/// Results of the runs of one program.
#[derive(Default)]
pub(crate) struct Runs {
    /// Requests per second of each run.
    pub(crate) requests_per_second: Samples,
    /// Processor time of each request, in microseconds.
    pub(crate) cpu_microseconds: Samples,
    /// Processor time of the sink for each request, in microseconds.
    pub(crate) sink_cpu_microseconds: Samples,
    /// Largest resident memory of any run.
    pub(crate) peak_rss_bytes: u64,
}

impl Runs {
    fn push(&mut self, requests: u64, rate: f64, usage: ResourceUsage, sink_cpu_seconds: f64) {
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
}

/// Measures both in turns.
pub(crate) async fn run(options: Http2Options, reporter: &dyn Reporter) -> anyhow::Result<Http2Report> {
    let directory = tempfile::Builder::new().prefix("stentor-lab-").tempdir()?;
    let mut sink = Sink::start(directory.path(), options.streams).await?;
    let h2load = H2load::prepare(&options, &sink, directory.path())?;
    let (mut ours, mut theirs) = (Runs::default(), Runs::default());
    for round in 1..=options.rounds {
        options.send(&mut sink, directory.path(), &mut ours)?;
        h2load.run(&options, &mut sink, directory.path(), &mut theirs)?;
        reporter.line(&format!("round {round} of {}", options.rounds));
    }
    sink.stop();
    Ok(Http2Report { options, ours, theirs, load_average: load_average() })
}

impl Http2Report {
    /// Ratio of our median rate to h2load's.
    pub(crate) fn rate_ratio(&self) -> f64 {
        ratio(&self.ours.requests_per_second, &self.theirs.requests_per_second)
    }

    /// Ratio of our median processor time per request to h2load's.
    pub(crate) fn cpu_ratio(&self) -> f64 {
        ratio(&self.ours.cpu_microseconds, &self.theirs.cpu_microseconds)
    }

    /// Returns the report as one object.
    pub(crate) fn object(&self) -> Value {
        let Http2Options { requests, rounds, connections, streams } = self.options;
        json!({
            "h2load_rate_ratio": self.rate_ratio(),
            "h2load_cpu_ratio": self.cpu_ratio(),
            "requests_per_second": self.ours.requests_per_second.quantile(0.5),
            "cpu_microseconds_per_request": self.ours.cpu_microseconds.quantile(0.5),
            "requests": requests,
            "connections": connections,
            "streams": streams,
            "rounds": rounds,
            "stentor": self.ours.object(),
            "h2load": self.theirs.object(),
            "load_average": self.load_average,
        })
    }
}

impl Http2Options {
    fn send(&self, sink: &mut Sink, directory: &Path, runs: &mut Runs) -> anyhow::Result<()> {
        let log = directory.join("load.log");
        let _ = std::fs::remove_file(&log);
        let arguments: Vec<OsString> = vec![
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
        let usage = ChildProcess::start_behind(
            "sender",
            &[Program::Laboratory.find()?.into()],
            &arguments,
            &[],
            &log,
        )?
        .finish(RUN_LIMIT)?;
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
    /// Writes the input files of h2load: a URI for every request, and the body.
    fn prepare(bench: &Http2Options, sink: &Sink, directory: &Path) -> anyhow::Result<Self> {
        let files = Self { uris: directory.join("uris.txt"), body: directory.join("body.json") };
        let mut uris = std::io::BufWriter::new(std::fs::File::create(&files.uris)?);
        for number in 0..bench.requests {
            writeln!(uris, "https://{}{}", sink.address, LoadSpec::path(number))?;
        }
        uris.flush()?;
        std::fs::write(&files.body, LoadSpec::body())?;
        Ok(files)
    }

    fn run(
        &self,
        bench: &Http2Options,
        sink: &mut Sink,
        directory: &Path,
        runs: &mut Runs,
    ) -> anyhow::Result<()> {
        let log = directory.join("h2load.log");
        let _ = std::fs::remove_file(&log);
        let mut command = Command::new("h2load");
        command.arg("-n").arg(bench.requests.to_string());
        command.arg("-c").arg(bench.connections.to_string()).arg("-m").arg(bench.streams.to_string());
        command.arg("-i").arg(&self.uris).arg("-d").arg(&self.body);
        for (name, value) in LoadSpec::headers() {
            let mut header = format!("{name}: ");
            let _ = write!(header, "{}", value.to_str().unwrap_or_default());
            command.arg("-H").arg(header);
        }
        let before = sink.usage().cpu_seconds;
        let child = ChildProcess::spawn("h2load", command, &log);
        let usage = child.context("h2load is needed: apt-get install nghttp2-client")?.finish(RUN_LIMIT)?;
        let said = std::fs::read_to_string(&log)?;
        let rate = rate_of(&said).ok_or_else(|| {
            CommandFailure::not_done(format!(
                "h2load did not answer every request with success; it said:\n{said}"
            ))
        })?;
        runs.push(bench.requests, rate, usage, sink.usage().cpu_seconds - before);
        Ok(())
    }
}

/// Parses the rate from h2load's output; `None` unless every request succeeded.
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

fn load_average() -> Option<f32> {
    procfs::LoadAverage::current().ok().map(|load| load.one)
}
