//! `stentor kill`: campaigns under kills and injected faults, with a proof at the end of each.

use crate::failure::{CommandFailure, Exit};
use crate::output::{Output, line};
use crate::progress::on_the_terminal;
use crate::value_names::one_of;
use anyhow::Context;
use clap::Args;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use stentor_stage::kill::{self, KillOptions, KillPhase, KillReport, PhaseReport};
use stentor_terminal::demo_report::describe as describe_campaign;
use stentor_terminal::service_name::{ServiceName, staged};

/// Kill processes, fill the disk, fail its syncs and shift the clock while campaigns run, and prove that nothing was lost
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor kill
  stentor kill --devices 100000 --kills 20 --seed 7 --json
  stentor kill --devices 1000000 --kills 40
  stentor kill --only disk-full,fsync-error
  stentor kill --only gateway --kills 5
  stentor kill --provider web-push,wns --only kills --kills 5

Each phase is a campaign of its own, with the proof of `stentor demo --kills`:
  kills        server and emulators are killed (kill -9) K times each, at random moments while deliveries are on their
               way, and both emulators are stopped as often (SIGSTOP, 6 or 1 seconds, SIGCONT)
  full-speed   the server is killed K times while sinks answer at once, with at least 10,000 devices for each kill; it shows
               how many deliveries a crash leaves in doubt when no push service is slow
  disk-full    the data directory is a tmpfs of its own that is filled while the campaign runs (needs root)
  fsync-error  strace makes every sync of the running server fail for a while (needs strace)
  clock-jump   the server's clock jumps an hour ahead, an hour behind, and back (needs libfaketime)
  gateway      the server is killed K times while at most 20,000 devices of its own gateway are connected and confirm their
               messages; the proof is that of `stentor demo --gateway`
The phases disk-full, fsync-error and clock-jump kill nothing and have at most 20,000 devices. During them messages are sent to
the server: it must keep each message that it accepts, and may refuse the others with 503. A phase that this machine cannot run
is skipped with its reason and proves nothing. With --json the report is a JSON object on the last line; --out also writes it to FILE.")]
pub(crate) struct KillArgs {
    /// Number of devices, dealt out evenly to the push services
    #[arg(long, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=10_000_000))]
    devices: u64,
    /// Number of kills of the server, of kills of an emulator, and of pauses of both emulators
    #[arg(long, default_value_t = 3, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=300))]
    kills: u32,
    /// The push services; with others than fcm and apns, emulators that accept all take the place of sinks
    #[arg(long = "provider", value_enum, value_name = "LIST", value_delimiter = ',', default_values = ["fcm", "apns"])]
    providers: Vec<ServiceName>,
    /// Only these phases
    #[arg(long, value_delimiter = ',', value_name = "PHASE", value_parser = one_of(&KillPhase::ALL, KillPhase::word, KillPhase::meaning))]
    only: Vec<KillPhase>,
    /// Seed that makes tokens, responses and the times of kills repeatable
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Also write the report to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl KillArgs {
    /// Runs it; the exit code is 0 if the proofs hold.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let ended = crate::process::asked_to_end()?;
        crate::process::raise_file_limit();
        let (options, reporter) = (self.options()?, on_the_terminal());
        let report = tokio::select! {
            report = kill::run(&options, &reporter) => report,
            () = ended => {
                return Err(CommandFailure::new(Exit::Interrupted, "interrupted; every process is ended").into());
            }
        };
        let object = report.object(self.seed);
        let written = self.out.as_deref().map(|path| write(path, &object)).transpose();
        // The results are shown before an error of the file: they may have taken hours.
        output.result(&object, || describe(&report))?;
        if let Some(path) = written?.filter(|_| !output.is_json()) {
            line(&format!("\nreport: {}", path.display()))?;
        }
        Ok(if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn options(&self) -> anyhow::Result<KillOptions> {
        let is_wanted = |phase: &KillPhase| self.only.is_empty() || self.only.contains(phase);
        let phases = KillPhase::ALL.into_iter().filter(is_wanted).collect();
        let providers = staged(&self.providers, self.devices)?;
        Ok(KillOptions { devices: self.devices, providers, kills: self.kills, phases, seed: self.seed })
    }
}

fn write<'a>(path: &'a Path, report: &Value) -> anyhow::Result<&'a Path> {
    let text = serde_json::to_string_pretty(report)?;
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(path)
}

/// Writes the phases as text, and the sums in a line.
fn describe(report: &KillReport) -> String {
    let mut parts: Vec<String> = report.phases().iter().map(describe_phase).collect();
    parts.extend(
        report
            .skipped()
            .iter()
            .map(|skipped| format!("skipped: {}: {}", said(&skipped["what"]), said(&skipped["reason"]))),
    );
    parts.push(sums(report));
    parts.join("\n\n")
}

fn describe_phase(phase: &PhaseReport) -> String {
    let text = phase.ended.as_ref().map_or_else(Clone::clone, |report| describe_campaign(report));
    format!("phase {}\n\n{text}", phase.phase)
}

fn sums(report: &KillReport) -> String {
    if report.phases().is_empty() {
        return "no phase was made: nothing is proven".to_owned();
    }
    format!(
        "all phases: {} lost, {} stuck, {} duplicates of at most {} ({} by the ledgers, the others were never answered), \
         the books {}",
        report.sum("lost"),
        report.sum("stuck"),
        report.sum("duplicates"),
        report.duplicate_bound(),
        report.ledger_duplicate_bound(),
        if report.is_balanced() { "balance" } else { "DO NOT BALANCE" }
    )
}

fn said(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_only_skipped_or_broke_off_proves_nothing() {
        let mut report = KillReport::default();
        report.skip("disk-full", "no root".to_owned());
        let text = describe(&report);
        assert!(text.contains("skipped: disk-full: no root") && text.contains("nothing is proven"), "{text}");
        report.note("kills", Err(anyhow::anyhow!("the server ended by itself")));
        let text = describe(&report);
        assert!(text.starts_with("phase kills\n\nbroken off: the server ended by itself"), "{text}");
        assert!(text.contains("all phases: 0 lost") && text.ends_with("the books DO NOT BALANCE"), "{text}");
    }
}
