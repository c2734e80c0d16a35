//! `stentor lab bench http2`: the sender beside h2load, against one sink, in turns.

use crate::bench::http2::{self, Http2Options, Http2Report, Runs};
use clap::Args;
use std::process::ExitCode;
use stentor_lab::statistics::{MedianSummary, Samples};
use stentor_terminal::output::{Output, table};
use stentor_terminal::progress::on_the_terminal;

/// Compare the sender with h2load: the same requests to the same sink over the same number of connections and streams
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench http2
  stentor lab bench http2 --rounds 9 --requests 2000000 --json

Needs h2load (Debian: apt-get install nghttp2-client). Each round runs both as fresh processes, one after the other.
The ratios compare the medians. The operating system counts the CPU time of each process.")]
pub(crate) struct Http2Args {
    /// Requests of each run, each to a different token
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..=10_000_000))]
    requests: u64,
    /// Number of rounds
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Connections at the same time
    #[arg(long, default_value_t = 4, value_name = "N")]
    connections: usize,
    /// Requests in flight on each connection
    #[arg(long, default_value_t = 250, value_name = "N")]
    streams: usize,
}

impl Http2Args {
    /// Measures both and compares them.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let Self { requests, rounds, connections, streams } = self;
        let options = Http2Options { requests, rounds, connections, streams };
        let report = http2::run(options, &*on_the_terminal()).await?;
        output.result(&report.object(), || describe(&report))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn describe(report: &Http2Report) -> String {
    let header = ["", "requests/s", "CPU us each", "sink's CPU us each", "peak RSS"];
    let rows = [row("stentor", &report.ours), row("h2load", &report.theirs)];
    let (rate, cpu) = (report.rate_ratio(), report.cpu_ratio());
    format!("{}\n\nrate: {rate:.2} times h2load's; processor time: {cpu:.3} of h2load's", table(header, rows))
}

fn row(name: &str, runs: &Runs) -> [String; 5] {
    let cell = |samples: &Samples, digits: usize| {
        samples.summary().map_or_else(String::new, |MedianSummary { median, min, max, .. }| {
            format!("{median:.digits$} ({min:.digits$} to {max:.digits$})")
        })
    };
    [
        name.to_owned(),
        cell(&runs.requests_per_second, 0),
        cell(&runs.cpu_microseconds, 3),
        cell(&runs.sink_cpu_microseconds, 3),
        format!("{:.0} MB", runs.peak_rss_bytes as f64 / 1e6),
    ]
}
