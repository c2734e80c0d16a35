//! `stentor demo`: the main job, with real processes, and a proof at its end.

mod campaign;
mod comparison;
pub(crate) mod emulator;
pub(crate) mod fleet;
pub(crate) mod import;
pub(crate) mod keys;
mod kills;
mod limits;
mod policy;
mod questions;
pub(crate) mod report;
pub(crate) mod server;
pub(crate) mod stage;
pub(crate) mod troubles;
mod verdict;

use crate::emulated::told;
use crate::failure::{Exit, Failure};
use crate::output::{Output, note, thousands};
use clap::{Args, ValueEnum};
use fleet::Fleet;
use kills::Kills;
use report::{Import, Report};
use stage::Stage;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use troubles::Trouble;

/// Send one campaign to a million emulated devices and prove where every message went
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor demo
  stentor demo --devices 10000
  stentor demo --devices 100000 --kills 20
  stentor demo --devices 100000 --kills 5 --kill-emulators --json

Starts the server and both emulators as processes of their own on 127.0.0.1, with real TLS and HTTP/2, in a directory
of their own. Exits 0 only if ledger and emulators agree for every single token, each is accepted or rejected and none
lost or stuck, the books balance, and duplicates are marked and stay within the bound that the ledger states.")]
pub(crate) struct Demo {
    /// How many devices: half Android through FCM, half Apple through APNs
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=fleet::MAX_DEVICES))]
    devices: u64,
    /// How often the server is killed (kill -9) while the campaign runs
    #[arg(long, default_value_t = 0, value_name = "K", value_parser = clap::value_parser!(u32).range(0..=1000))]
    kills: u32,
    /// Kill the emulators as often (three times without --kills)
    #[arg(long)]
    kill_emulators: bool,
    /// How often the emulators stop for a while; the laboratory asks for that.
    #[arg(skip)]
    stalls: u32,
    /// What goes wrong below the server on the way; the laboratory asks for that.
    #[arg(skip)]
    trouble: Option<Trouble>,
    /// Keep everything in this directory, which must not exist or be empty
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Makes tokens, answers and moments repeatable
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// What the emulators answer
    #[arg(long, value_enum, default_value_t = DemoPolicy::Realistic)]
    policy: DemoPolicy,
    /// How long every answer takes, in milliseconds; with kills it is chosen so that they fit in
    #[arg(long, value_name = "MS")]
    latency_ms: Option<f64>,
    /// Answer with sinks, which do nothing but count, instead of emulators: success always, and fast
    #[arg(long, conflicts_with = "policy")]
    sinks: bool,
    /// Give up when nothing has moved for so long
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    give_up_after_seconds: u64,
}

/// What the emulators answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoPolicy {
    /// A few dead tokens, a few passing errors
    Realistic,
    /// Success, always
    AcceptAll,
}

impl Demo {
    /// A campaign through sinks, without kills: what the pipeline alone can do.
    pub(crate) fn through_sinks(devices: u64, latency_ms: Option<f64>, keep: Option<PathBuf>) -> Self {
        Self {
            devices,
            kills: 0,
            kill_emulators: false,
            stalls: 0,
            trouble: None,
            keep,
            seed: 1,
            policy: DemoPolicy::AcceptAll,
            latency_ms,
            sinks: true,
            give_up_after_seconds: 60,
        }
    }

    /// Campaigns through emulators that accept all until they are told otherwise, and nothing is killed.
    pub(crate) fn through_emulators(devices: u64) -> Self {
        Self { policy: DemoPolicy::AcceptAll, ..Self::under_fire(devices, 0, 1) }
    }

    /// A campaign through emulators in which all that can be killed is, so often each, and emulators stop as often.
    pub(crate) fn under_fire(devices: u64, kills: u32, seed: u64) -> Self {
        Self {
            devices,
            kills,
            kill_emulators: kills > 0,
            stalls: kills,
            trouble: None,
            keep: None,
            seed,
            policy: DemoPolicy::Realistic,
            latency_ms: None,
            sinks: false,
            give_up_after_seconds: 300,
        }
    }

    /// A campaign through sinks that answer at once, while the server is killed so often.
    pub(crate) fn killed_at_full_speed(devices: u64, kills: u32, seed: u64) -> Self {
        Self { kills, seed, ..Self::through_sinks(devices, Some(0.0), None) }
    }

    /// A campaign through emulators while a trouble comes again and again below the server, which nobody kills.
    pub(crate) fn in_trouble(devices: u64, trouble: Trouble, seed: u64) -> Self {
        Self { trouble: Some(trouble), ..Self::under_fire(devices, 0, seed) }
    }

    /// Runs the demo; the exit code says whether the proof holds.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let ended = crate::process::asked_to_end()?;
        let report = tokio::select! {
            report = self.perform() => report?,
            () = ended => {
                return Err(Failure::new(Exit::Interrupted, "interrupted; every process of the demo is ended").into());
            }
        };
        output.result(&report.object(), || report.describe())?;
        Ok(if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Plays it from beginning to end.
    pub(crate) async fn perform(&self) -> anyhow::Result<Report> {
        let fleet = Fleet::new(self.devices, self.seed);
        let mut stage = self.build().await?;
        let import_seconds = import::run(&stage.client, fleet).await?.as_secs_f64();
        let import_usage = if self.sinks { Some(stage.server.restart().await?) } else { None };
        let run = campaign::run(self, &mut stage).await?;
        stage.stop_emulators();
        let compared = Instant::now();
        let comparison = comparison::run(self.answers(), &stage, fleet, &run.ledger).await?;
        note(&format!(
            "comparison: {} tokens{}, the ledger asked about {}",
            thousands(fleet.devices()),
            told(" in ", compared.elapsed()),
            thousands(comparison.asked)
        ));
        let usage = stage.server.stop();
        let import = Import { seconds: import_seconds, usage: import_usage };
        let limits = stage.server.limits()?;
        Ok(Report::new(self, run, comparison, usage, import, limits))
    }

    /// Starts everything that it needs.
    pub(crate) async fn build(&self) -> anyhow::Result<Stage> {
        let started = Instant::now();
        let stage = Stage::build(self).await?;
        note(&format!(
            "server and emulators are ready{} in {}",
            told(" after ", started.elapsed()),
            stage.directory().display()
        ));
        let pace = match stage.latency_ms {
            Some(ms) => format!("answers take {ms:.1} ms"),
            None => "answers come at once".to_owned(),
        };
        let limits = limits::told(&stage.server.limits()?);
        note(&format!("policy {}, {pace}; limits in force: {limits}", self.policy_word()));
        Ok(stage)
    }

    /// What the push services answer.
    fn answers(&self) -> DemoPolicy {
        if self.sinks { DemoPolicy::AcceptAll } else { self.policy }
    }

    fn policy_word(&self) -> &'static str {
        match self.answers() {
            DemoPolicy::AcceptAll if self.sinks => "accept-all (sinks)",
            DemoPolicy::Realistic => "realistic",
            DemoPolicy::AcceptAll => "accept-all",
        }
    }

    /// How often an emulator is killed.
    fn emulator_kills(&self) -> u32 {
        match (self.kill_emulators, self.kills) {
            (false, _) => 0,
            (true, 0) => 3,
            (true, kills) => kills,
        }
    }

    fn planned(&self) -> Kills {
        Kills {
            server: self.kills,
            emulators: self.emulator_kills(),
            stalls: self.stalls,
            troubles: self.planned_troubles(),
        }
    }

    fn all_kills(&self) -> u32 {
        self.kills + self.emulator_kills() + self.stalls + self.planned_troubles()
    }

    fn planned_troubles(&self) -> u32 {
        if self.trouble.is_some() { troubles::TIMES } else { 0 }
    }
}
