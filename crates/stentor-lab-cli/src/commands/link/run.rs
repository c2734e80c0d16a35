//! `stentor lab link run`: a command behind a link.

mod options;
mod outcome;

use super::server_side::ServerSideArgs;
use crate::commands::rig::refusal;
use anyhow::Context;
use clap::Args;
use options::ShapeArgs;
use outcome::LinkRunOutcome;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};
use stentor_rig::{Plan, Rig, RigLevel, Side, Wanted};
use stentor_terminal::output::{Output, note};
use stentor_terminal::process::asked_to_end;

/// Time limit for a command to end after it was signalled.
const END_WITHIN: Duration = Duration::from_secs(5);
/// Time without packets after which the link counts as idle.
const QUIET: Duration = Duration::from_millis(50);

/// Run a command on the device's side of a link
///
/// The command runs in a network namespace of its own, and the link is the only way out of it. At the link's other end is the server's
/// side, 10.77.0.2 (also in the environment as STENTOR_SERVER): a second command runs there (--serve), or single ports of it lead to
/// services of this machine or beyond (--forward). The machine's own network is not changed. There is no name resolution: use addresses.
///
/// The exit code is the command's; 6 if this machine allows no link.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab link run --profile 3g --serve 'python3 -m http.server 8000' --wait-port 8000 -- curl -s http://10.77.0.2:8000/
  stentor lab link run --profile 4g --forward 8080 -- curl http://10.77.0.2:8080/
  stentor lab link run --profile wifi --forward 443=example.org:443 --pcap out.pcap -- curl --connect-to ::10.77.0.2: https://example.org/
  stentor lab link run --delay-ms 30 --down-trace down.trace --up-trace up.trace -- ./app")]
pub(super) struct LinkRunArgs {
    #[command(flatten)]
    shape: ShapeArgs,
    /// Seed of the losses and delays of packets
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    server: ServerSideArgs,
    /// Write the packets at the device's end to FILE, those at the server's end to FILE with `-server`, and the outcome of
    /// each packet to FILE with `-notes`
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Accept a lower level: veth has addresses but no link; loopback has neither
    #[arg(long, value_parser = options::level, default_value = "netns")]
    level: RigLevel,
    /// Command to run, with its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl LinkRunArgs {
    pub(super) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let end = asked_to_end()?;
        let link = self.shape.link()?;
        let plan = Plan { level: Wanted::Exactly(self.level), seed: self.seed, ..Plan::new(link) };
        let rig = Rig::raise(&plan).map_err(refusal)?;
        for missing in self.level.cannot_test() {
            note(&format!("{}: cannot test {missing}", self.level));
        }
        let services = self.server.start(&rig).await?;
        if self.pcap.is_some() || output.is_json() {
            rig.begin_capture();
        }
        let started = Instant::now();
        let status = attend(self.start(&rig)?, end).await?;
        let took = started.elapsed();
        // The command's last packets may still be on their way.
        let _ = rig.settle(QUIET, Duration::from_secs(2));
        let outcome = LinkRunOutcome::of(&rig, &plan.link, status, took);
        // After the outcome, so that it contains no traffic of their ending; before the rig is dropped, because they are in its namespaces.
        drop(services);
        if let Some(file) = &self.pcap {
            outcome.write(file)?;
        }
        outcome.print(output)?;
        Ok(outcome.exit_code())
    }

    fn start(&self, rig: &Rig) -> anyhow::Result<Child> {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        command.env("STENTOR_SERVER", rig.address(Side::Server).to_string());
        command.env("STENTOR_DEVICE", rig.address(Side::Device).to_string());
        rig.spawn(Side::Device, command)
            .with_context(|| format!("`{}` cannot be started", self.command[0].to_string_lossy()))
    }
}

/// Waits for a command; ends it when this process is signalled to end.
async fn attend(mut child: Child, end: impl Future<Output = ()>) -> anyhow::Result<ExitStatus> {
    let process = child.id();
    let mut waiting = tokio::task::spawn_blocking(move || child.wait());
    tokio::select! {
        status = &mut waiting => return Ok(status??),
        () = end => {}
    }
    // A signal from the terminal has reached it already; a second one does no harm.
    signal(process, rustix::process::Signal::TERM);
    match tokio::time::timeout(END_WITHIN, &mut waiting).await {
        Ok(status) => Ok(status??),
        Err(_) => {
            signal(process, rustix::process::Signal::KILL);
            Ok(waiting.await??)
        }
    }
}

fn signal(process: u32, signal: rustix::process::Signal) {
    if let Some(process) = rustix::process::Pid::from_raw(process.cast_signed()) {
        // An error means that it has ended already, as intended.
        let _ = rustix::process::kill_process(process, signal);
    }
}
