//! `stentor lab cluster`: several servers over one PostgreSQL database, of which one after the other is killed or stopped.

use crate::commands::demo::describe::describe;
use crate::failure::{CommandFailure, Exit};
use crate::output::Output;
use crate::progress::on_the_terminal;
use clap::Args;
use std::process::ExitCode;
use stentor_stage::demo::{self, DemoOptions};

/// Kill and stop servers that share a PostgreSQL database while they send a campaign, and prove that nothing was lost
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab cluster
  stentor lab cluster --nodes 3 --faults 10 --devices 20000 --seed 7 --json

A PostgreSQL server of its own (15 or newer must be installed), two emulators and the servers run on this machine. Every other fault
is a kill -9 of a server, which is back at once or after eight seconds; the others are SIGSTOP for eight seconds, while a
server counts as dead after three. The campaign is slowed down to twelve seconds for each fault by the quota of its
credentials, which all servers share. The proof is that of `stentor demo --kills`; with --json it is a JSON object on the last
line, in which `faults`, `lost`, `stuck`, `duplicates`, `duplicate_bound` and `ledger_balanced` say what scripts need. The exit code
is 0 only if nothing is lost or stuck, the duplicates are within their bound and the books balance.")]
pub(crate) struct ClusterArgs {
    /// How many servers
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=16))]
    nodes: u32,
    /// How often a server is killed or stopped
    #[arg(long, default_value_t = 4, value_name = "K", value_parser = clap::value_parser!(u32).range(0..=1_000))]
    faults: u32,
    /// How many devices: half through FCM, half through APNs
    #[arg(long, default_value_t = 4_000, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=10_000_000))]
    devices: u64,
    /// Makes tokens, answers and the times of faults repeatable
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
}

impl ClusterArgs {
    /// Runs it; the exit code says whether the proof holds.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let ended = crate::process::asked_to_end()?;
        crate::process::raise_file_limit();
        let options = DemoOptions::of_nodes(self.devices, self.nodes, self.faults, self.seed);
        let reporter = on_the_terminal();
        let report = tokio::select! {
            report = demo::run(&options, &reporter) => report?,
            () = ended => {
                return Err(CommandFailure::new(Exit::Interrupted, "interrupted; every process is ended").into());
            }
        };
        let mut object = report.object();
        object["nodes"] = self.nodes.into();
        object["seed"] = self.seed.into();
        output.result(&object, || describe(&report))?;
        Ok(if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
