//! `stentor lab kill`: campaigns while everything is killed and troubled that can be, and a proof at the end of each.

mod tally;

use crate::demo::Demo;
use crate::demo::troubles::Trouble;
use crate::failure::{Exit, Failure};
use crate::output::{Output, line, note};
use anyhow::Context;
use clap::{Args, ValueEnum};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tally::Tally;

/// Most devices of a campaign in trouble: what matters there is the trouble, and the disk is small.
const TROUBLED_MAX_DEVICES: u64 = 20_000;
/// Fewest devices for a kill at full speed, or the campaign would end before all kills had happened.
const FAST_MIN_DEVICES_PER_KILL: u64 = 10_000;

/// Kill server and emulators again and again while campaigns run, stop emulators, fill the disk, fail its syncs, turn the clock, and prove that nothing was lost
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab kill
  stentor lab kill --devices 100000 --kills 20 --seed 7 --json
  stentor lab kill --devices 1000000 --kills 40
  stentor lab kill --only disk-full,fsync-error

The phases are campaigns of their own, each proven as by `stentor demo --kills`:
  kills        server and emulators are killed (kill -9) K times each, at random moments while deliveries are on their
               way, and both emulators are stopped as often (SIGSTOP, 6 or 1 seconds, SIGCONT)
  full-speed   the server is killed K times while sinks answer at once, with at least 10,000 devices for each kill:
               so many deliveries a crash leaves in doubt when no push service is slow
  disk-full    the data directory is a tmpfs of its own that is filled while the campaign runs (needs root)
  fsync-error  strace makes every sync of the running server fail for a while (needs strace)
  clock-jump   the server's clock goes an hour ahead, an hour behind, and back (needs libfaketime)
In the last three phases, with at most 20,000 devices, nobody is killed; the server is asked to keep messages meanwhile and has
to keep or to refuse them, and both must be true. A phase that cannot be made here is skipped, says why, and proves
nothing. The report is a JSON object on the last line with --json; FILE gets it, too.")]
pub(crate) struct Kill {
    /// How many devices: half through FCM, half through APNs
    #[arg(long, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=10_000_000))]
    devices: u64,
    /// How often the server is killed, how often an emulator is, and how often both stop for a while
    #[arg(long, default_value_t = 3, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=300))]
    kills: u32,
    /// Only these phases
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PHASE")]
    only: Vec<Phase>,
    /// Makes tokens, answers and moments repeatable
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Write the report to this file, too
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A campaign of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Phase {
    /// All that can be killed is, and emulators stop
    Kills,
    /// The server is killed while nothing slows it down
    FullSpeed,
    /// The disk is full for a while
    DiskFull,
    /// Every sync fails for a while
    FsyncError,
    /// The clock jumps
    ClockJump,
}

impl Phase {
    /// Its name on the command line and in the report.
    const fn word(self) -> &'static str {
        match self {
            Self::Kills => "kills",
            Self::FullSpeed => "full-speed",
            Self::DiskFull => "disk-full",
            Self::FsyncError => "fsync-error",
            Self::ClockJump => "clock-jump",
        }
    }

    const fn trouble(self) -> Option<Trouble> {
        match self {
            Self::Kills | Self::FullSpeed => None,
            Self::DiskFull => Some(Trouble::DiskFull),
            Self::FsyncError => Some(Trouble::FsyncError),
            Self::ClockJump => Some(Trouble::ClockJump),
        }
    }
}

impl Kill {
    /// Runs it; the exit code says whether the proofs hold.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let ended = crate::process::asked_to_end()?;
        let tally = tokio::select! {
            tally = self.perform() => tally,
            () = ended => {
                return Err(Failure::new(Exit::Interrupted, "interrupted; every process is ended").into());
            }
        };
        let object = tally.object(self.seed);
        let written = self.out.as_deref().map(|path| write(path, &object)).transpose();
        // What was found is told first: it may have taken hours.
        output.result(&object, || tally.describe())?;
        if let Some(path) = written?.filter(|_| !output.is_json()) {
            line(&format!("\nreport: {}", path.display()))?;
        }
        Ok(if tally.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    async fn perform(&self) -> Tally {
        let mut tally = Tally::default();
        let all = Phase::value_variants().iter();
        for phase in all.filter(|phase| self.only.is_empty() || self.only.contains(phase)) {
            if let Some(reason) = phase.trouble().and_then(Trouble::obstacle) {
                note(&format!("skipped: {}: {reason}", phase.word()));
                tally.skip(phase.word(), reason);
                continue;
            }
            note(&format!("phase: {}", phase.word()));
            tally.note(phase.word(), self.demo(*phase).perform().await);
        }
        tally
    }

    fn demo(&self, phase: Phase) -> Demo {
        let fast_devices = self.devices.max(FAST_MIN_DEVICES_PER_KILL * u64::from(self.kills));
        match phase.trouble() {
            None if phase == Phase::FullSpeed => {
                Demo::killed_at_full_speed(fast_devices, self.kills, self.seed)
            }
            None => Demo::under_fire(self.devices, self.kills, self.seed),
            Some(trouble) => Demo::in_trouble(self.devices.min(TROUBLED_MAX_DEVICES), trouble, self.seed),
        }
    }
}

fn write<'a>(path: &'a Path, report: &Value) -> anyhow::Result<&'a Path> {
    let text = serde_json::to_string_pretty(report)?;
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(path)
}
