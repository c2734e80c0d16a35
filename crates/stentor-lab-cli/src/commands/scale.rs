//! `stentor lab scale`: the expected gain of more servers over one database, simulated from measured costs.

use crate::scaling::{self, MeasuredRun, ScalingCosts, ScalingResult, ScalingShape};
use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use stentor_stage::text::thousands;
use stentor_terminal::failure::CommandFailure;
use stentor_terminal::output::{Output, table};

/// Simulate one campaign through several servers over one PostgreSQL, from measured costs
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab scale
  stentor lab scale --nodes 1,2,4,8 --node-cores 2 --database-cores 16 --json
  stentor lab scale --answer-ms 200 --devices 100000000
  stentor lab scale --measured one.json --measured two.json

The limit is the part that would raise the rate most if it were doubled. Nothing is sent: each server leases chunks, reads their devices,
sends and settles, with the costs given here; each step takes from half to one and a half of its cost. Only one transaction of the ledger
is open at a time, as in the database. The defaults are the costs of one server and one PostgreSQL on two shared cores; docs/scaling.md
has the machine. With --measured the costs come from
results of `stentor lab bench pipeline --store postgres --json`; these do not separate PostgreSQL's share for the ledger, which
--ledger-us-per-chunk gives.
Not simulated: the network, the disk beyond the cost of a transaction, quotas, errors. The same options give the same result.")]
pub(crate) struct ScaleArgs {
    /// Numbers of servers, one simulation each
    #[arg(long, value_delimiter = ',', default_value = "1,2,3,4,6,8,12,16", value_name = "N,…", value_parser = clap::value_parser!(u32).range(1..=256))]
    nodes: Vec<u32>,
    /// The processors of each server
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    node_cores: u32,
    /// The processors of the database
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    database_cores: u32,
    /// Number of devices of the campaign
    #[arg(long, default_value_t = 10_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000))]
    devices: u64,
    /// The result of a benchmark of the pipeline over PostgreSQL; of several, each applies to its number of servers and to larger ones
    #[arg(long, value_name = "FILE", conflicts_with_all = ["server_us_per_push", "read_us_per_push"])]
    measured: Vec<PathBuf>,
    /// The server's processor time for one push, in microseconds
    #[arg(long, default_value_t = 0.53, value_name = "US", value_parser = cost)]
    server_us_per_push: f64,
    /// The database's processor time for reading one device with its token, in microseconds
    #[arg(long, default_value_t = 1.1, value_name = "US", value_parser = cost)]
    read_us_per_push: f64,
    /// The database's processor time for leasing and settling one chunk of 1,000, in microseconds
    #[arg(long, default_value_t = 90.0, value_name = "US", value_parser = cost)]
    ledger_us_per_chunk: f64,
    /// Further time of each transaction of the ledger, in microseconds
    #[arg(long, default_value_t = 500.0, value_name = "US", value_parser = cost)]
    ledger_us_per_transaction: f64,
    /// Response time of the push services
    #[arg(long, default_value_t = 50.0, value_name = "MS", value_parser = cost)]
    answer_ms: f64,
    /// Seed of the times of single steps
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
}

/// The server's defaults.
const CHUNK_MAX_DEVICES: u64 = 1_000;
const UNSETTLED_MAX_DELIVERIES: u64 = 100_000;

fn cost(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value: &f64| (0.0..=1e9).contains(value));
    value.ok_or_else(|| "it is a number from 0 to 1,000,000,000".to_owned())
}

impl ScaleArgs {
    /// Simulates the servers.
    pub(crate) fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let costs = ScalingCosts {
            server_us_per_push: self.server_us_per_push,
            read_us_per_push: self.read_us_per_push,
            ledger_us_per_chunk: self.ledger_us_per_chunk,
            ledger_us_per_transaction: self.ledger_us_per_transaction,
            answer_ms: self.answer_ms,
        };
        let runs = self.measured.iter().map(|file| read(file)).collect::<anyhow::Result<Vec<_>>>()?;
        let simulate = |nodes: &u32| {
            let measured =
                MeasuredRun::nearest(&runs, *nodes).map(|run| run.costs(&costs, CHUNK_MAX_DEVICES));
            scaling::simulate(&measured.unwrap_or(costs), self.shape(*nodes))
        };
        let results: Vec<_> = self.nodes.iter().map(simulate).collect();
        let objects: Vec<Value> = results.iter().map(ScalingResult::object).collect();
        let measured: Vec<Value> = runs.iter().map(MeasuredRun::object).collect();
        let headings =
            ["servers", "pushes/s", "for each", "servers busy", "database busy", "ledger busy", "limit"];
        output.result(&json!({"simulated": objects, "measured": measured, "seed": self.seed}), || {
            table(headings, results.iter().map(shown))
        })?;
        Ok(ExitCode::SUCCESS)
    }

    const fn shape(&self, nodes: u32) -> ScalingShape {
        ScalingShape {
            nodes,
            node_cores: self.node_cores,
            database_cores: self.database_cores,
            devices: self.devices,
            chunk_max_devices: CHUNK_MAX_DEVICES,
            unsettled_max_deliveries: UNSETTLED_MAX_DELIVERIES,
            seed: self.seed,
        }
    }
}

/// Reads the result of a benchmark.
fn read(file: &Path) -> anyhow::Result<MeasuredRun> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let run = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| error.to_string());
    let run = run.and_then(|result| MeasuredRun::read(&result));
    run.map_err(|problem| CommandFailure::usage(format!("{}: {problem}", file.display())).into())
}

fn shown(result: &ScalingResult) -> [String; 7] {
    let percent = |part: f64| format!("{:.0} %", part * 100.0);
    let (nodes, rate) = (result.shape.nodes, result.pushes_per_second());
    [
        nodes.to_string(),
        thousands(rate as u64),
        thousands((rate / f64::from(nodes)) as u64),
        percent(result.nodes_busy),
        percent(result.database_busy),
        percent(result.ledger_busy),
        result.limit.to_owned(),
    ]
}
