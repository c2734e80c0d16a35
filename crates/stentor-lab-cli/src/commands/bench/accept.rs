//! `stentor lab bench accept`: the rate of single messages that are on disk and answered with 202.

use super::shared_engines;
use crate::bench::accept::{self, AcceptOptions};
use clap::Args;
use std::process::ExitCode;
use std::time::Duration;
use stentor_stage::engines::StageQueue;
use stentor_terminal::output::Output;
use stentor_terminal::progress::on_the_terminal;
use stentor_terminal::store_name::StoreName;

/// Send many single messages at once, and measure the rate at which the server accepts them
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench accept
  stentor lab bench accept --messages 100000 --callers 64 --json
  stentor lab bench accept --store postgres --json
  stentor lab bench accept --store postgres --queue nats --nodes 2 --without-rivals --json
  stentor lab bench accept --kills 20 --without-rivals --json

Each message is sent to a sink, and the bench checks that it arrived there. The callers share the machine with the server.
`floor` is the rate of the same callers at /healthz, which does nothing: no server on this machine can answer faster.")]
pub(crate) struct AcceptArgs {
    /// Number of messages, each to a different token
    #[arg(long, default_value_t = 50_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2_000_000))]
    messages: u64,
    /// Callers at the same time
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    callers: u64,
    /// Seconds for which the callers then send without a pause, followed by ten at half of that rate and ten at a tenth; 0 leaves it out
    #[arg(long, default_value_t = 60, value_name = "S", value_parser = clap::value_parser!(u64).range(0..=600))]
    seconds: u64,
    /// Kills of the server under the same load, after it; each message that was answered with 202 must still arrive
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1_000))]
    kills: u32,
    /// Store of the server; if the store or the queue is not sqlite, sqlite is measured for both too, and the result has the ratios
    #[arg(long, value_enum, default_value_t = StoreName::Sqlite)]
    store: StoreName,
    /// Queue of the server: sqlite, memory, postgres, nats (of the bench's own), or nats://HOST:PORT
    #[arg(long, default_value = "sqlite", value_name = "QUEUE")]
    queue: StageQueue,
    /// Number of servers, to which the callers are dealt out; several need --store postgres, and a queue that they share (postgres or nats)
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    nodes: u32,
    /// Leave out the programs that are measured under the same sustained load
    #[arg(long)]
    without_rivals: bool,
}

impl AcceptArgs {
    /// Measures and prints the report.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let Self { messages, callers, seconds, kills, store, queue, nodes, without_rivals } = self;
        shared_engines::check(nodes, store.into(), &queue)?;
        let sustained = Duration::from_secs(seconds);
        let options = AcceptOptions {
            messages,
            callers,
            sustained,
            kills,
            store: store.into(),
            queue,
            nodes,
            with_rivals: !without_rivals,
        };
        let report = accept::run(options, &on_the_terminal()).await?;
        output.result(&report.object(), || {
            let [p50, p99] = [0.5, 0.99].map(|part| report.latency_ms(part).unwrap_or_default());
            let rate = report.accepted_per_second();
            format!("{rate:.0} messages per second on disk and answered; p50 {p50:.2} ms, p99 {p99:.2} ms")
        })?;
        Ok(super::exit(report.holds()))
    }
}
