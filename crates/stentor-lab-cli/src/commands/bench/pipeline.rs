//! `stentor lab bench pipeline`: one campaign through sinks, from the 202 to the settled ledger.

use super::shared_engines;
use crate::bench::pipeline::{self, PipelineOptions};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use stentor_stage::engines::{StageQueue, StageStore};
use stentor_terminal::output::Output;
use stentor_terminal::progress::on_the_terminal;
use stentor_terminal::{demo_report::describe, store_name::StoreName};

/// Send one campaign to sinks, which accept every push, and measure the server
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench pipeline
  stentor lab bench pipeline --devices 10000000 --rounds 1
  stentor lab bench pipeline --latency-ms 50 --json
  stentor lab bench pipeline --store postgres --devices 100000 --json
  stentor lab bench pipeline --store postgres --queue postgres --devices 100000
  stentor lab bench pipeline --queue nats --devices 100000
  stentor lab bench pipeline --nodes 3 --store postgres --queue nats --json

The server is restarted after the import, so that campaign_peak_rss_bytes is that of the campaign alone (queries
afterwards raise server_peak_rss_bytes); the campaign begins when the server has its access token and connections.
Server, FCM sink and APNs sink are processes of their own on 127.0.0.1, with real TLS and HTTP/2; no quota, every other
setting is the default. The fields of the last round are those of `stentor demo --json`, with all rounds' samples.")]
pub(crate) struct PipelineArgs {
    /// Number of devices: half through FCM, half through APNs
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=20_000_000))]
    devices: u64,
    /// Response time of the sinks
    #[arg(long, value_name = "MS")]
    latency_ms: Option<f64>,
    /// Number of rounds, each with a new server and an empty store
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: u32,
    /// Store of the server; if the store or the queue is not sqlite, each round measures sqlite for both too, and the result has the ratios
    #[arg(long, value_enum, default_value_t = StoreName::Sqlite)]
    store: StoreName,
    /// Queue of the waiting chunks: sqlite, memory, postgres (with --store postgres), nats (a server of its own) or the URL of a
    /// nats-server
    #[arg(long, default_value = "sqlite", value_name = "QUEUE")]
    queue: StageQueue,
    /// Number of servers that share the campaign; several need --store postgres, and a queue that they share (postgres or nats). The result
    /// has the processor time of each, of PostgreSQL, of nats-server, and of all for a million pushes
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    nodes: u32,
    /// Keep all files of a single round in this directory; it must be empty or not exist
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

impl PipelineArgs {
    /// Measures and prints the report.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let Self { devices, latency_ms, rounds, store, queue, nodes, keep } = self;
        let store = StageStore::from(store);
        shared_engines::check(nodes, store, &queue)?;
        let options = PipelineOptions { devices, latency_ms, rounds, store, queue, nodes, keep };
        let report = pipeline::run(&options, &on_the_terminal()).await?;
        output.result(&report.object(), || report.last().map(describe).unwrap_or_default())?;
        Ok(super::exit(report.holds()))
    }
}
