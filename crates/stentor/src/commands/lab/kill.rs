//! `stentor lab kill`: a campaign while everything is killed that can be, and a proof at its end.

use crate::demo::Demo;
use crate::failure::{Exit, Failure};
use crate::output::{Output, note};
use anyhow::Context;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Troubles that were not made, and why.
const SKIPPED: [(&str, &str); 2] = [
    ("disk full", "not built: the data directory would have to be a small file system of its own"),
    (
        "clock jump",
        "the server reads the system's clock, which is not ours to change; tests of the pipeline jump a clock",
    ),
];

/// Kill server and emulators again and again while a campaign runs, stop emulators, and prove that nothing was lost
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab kill
  stentor lab kill --devices 100000 --kills 20 --seed 7 --json

Each of server and emulators is killed (kill -9) so often, at random moments while deliveries are on their way, and
both emulators are stopped as often (SIGSTOP, 6 or 1 seconds, SIGCONT): connections stay open and nobody answers. As `stentor demo --kills`, with the same proof. FILE gets the report as JSON.")]
pub(crate) struct Kill {
    /// How many devices: half through FCM, half through APNs
    #[arg(long, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=10_000_000))]
    devices: u64,
    /// How often the server is killed, how often an emulator is, and how often both stop for a while
    #[arg(long, default_value_t = 3, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=300))]
    kills: u32,
    /// Makes tokens, answers and moments repeatable
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Where the report goes
    #[arg(long, default_value = "lab-kill.json", value_name = "FILE")]
    out: PathBuf,
}

impl Kill {
    /// Runs it; the exit code says whether the proof holds.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let ended = crate::process::asked_to_end()?;
        let demo = Demo::under_fire(self.devices, self.kills, self.seed);
        let report = tokio::select! {
            report = demo.perform() => report?,
            () = ended => {
                return Err(Failure::new(Exit::Interrupted, "interrupted; every process is ended").into());
            }
        };
        let mut object = report.object();
        object["seed"] = self.seed.into();
        object["skipped"] =
            SKIPPED.map(|(what, why)| json!({"what": what, "reason": why})).into_iter().collect();
        let text = serde_json::to_string_pretty(&object)?;
        std::fs::write(&self.out, text)
            .with_context(|| format!("{} cannot be written", self.out.display()))?;
        for (what, why) in SKIPPED {
            note(&format!("skipped: {what}: {why}"));
        }
        output.result(&object, || format!("{}\n\nreport: {}", report.describe(), self.out.display()))?;
        Ok(if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
