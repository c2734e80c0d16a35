//! One fork of a candidate: fresh processes, a link of its own, their time and their bytes.

use super::caller::{CallerOrder, CallerReport, RequestOptions};
use super::candidate::Candidate;
use crate::commands::link::server_side::{self, ServerSideArgs};
use crate::commands::rig::refusal;
use anyhow::Context;
use reqwest::Url;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use stentor_lab::comparison::ComparedFork;
use stentor_lab::runner::seed::ForkIdentity;
use stentor_lab::statistics::Samples;
use stentor_rig::forward::Forward;
use stentor_rig::lateness::LatenessLimits;
use stentor_rig::{Link, Plan, Rig, RigError, RigLevel, Side, Wanted};
use stentor_terminal::failure::{CommandFailure, Exit};

/// Attempts at a fork until one counts.
const ATTEMPTS_MAX: usize = 3;
/// Time without packets after which the link counts as idle.
const QUIET: Duration = Duration::from_millis(50);
const SETTLE_WITHIN: Duration = Duration::from_secs(2);

/// The settings that all forks share.
pub(super) struct ForkBench<'a> {
    pub(super) link: Option<&'a Link>,
    pub(super) seed: u64,
    pub(super) patience: Duration,
    pub(super) late_p99_max_ns: u64,
    pub(super) requests: &'a RequestOptions,
    pub(super) server: &'a ServerSideArgs,
}

/// The times of a fork, in seconds.
struct ForkTimes {
    seconds: f64,
    first_seconds: Option<f64>,
    exchanges: u64,
}

impl ForkBench<'_> {
    pub(super) const fn level(&self) -> RigLevel {
        if self.link.is_some() { RigLevel::Netns } else { RigLevel::Loopback }
    }

    /// Runs a fork until it counts, at most three times; returns all attempts.
    pub(super) async fn attempts(
        &self,
        place: usize,
        candidate: &Candidate,
        round: u32,
    ) -> anyhow::Result<Vec<ComparedFork>> {
        let identity =
            ForkIdentity { study: "measure", run: self.seed, round, cell: candidate.name(), fork: round };
        let mut attempts = Vec::new();
        while attempts.len() < ATTEMPTS_MAX {
            let fork = self.attempt(place, candidate, round, identity.seed()).await?;
            let counts = fork.invalid_reason.is_none();
            attempts.push(fork);
            if counts {
                break;
            }
        }
        Ok(attempts)
    }

    async fn attempt(
        &self,
        candidate: usize,
        what: &Candidate,
        round: u32,
        seed: u64,
    ) -> anyhow::Result<ComparedFork> {
        let rig = self.rig(seed)?;
        let side = self.server.start(&rig).await?;
        rig.begin_capture();
        let times = match what {
            Candidate::Command(line) => self.command(&rig, line).await,
            Candidate::Service(url) => self.service(&rig, url).await,
        };
        let times = times?;
        // The last packets may still be on their way.
        let _ = rig.settle(QUIET, SETTLE_WITHIN);
        let capture = rig.end_capture();
        let bytes = capture.is_complete.then(|| {
            let anatomy = capture.anatomy(Side::Device);
            [anatomy.up, anatomy.down]
        });
        let limits = LatenessLimits { p99_ns: self.late_p99_max_ns, max_ns: u64::MAX };
        let invalid_reason = rig.lateness().complaint(limits);
        drop(side);
        let ForkTimes { seconds, first_seconds, exchanges } = times;
        Ok(ComparedFork { candidate, round, seed, invalid_reason, seconds, first_seconds, exchanges, bytes })
    }

    fn rig(&self, seed: u64) -> anyhow::Result<Rig> {
        let link = self.link.cloned().or_else(|| Link::profile("open")).context("there is no open link")?;
        let plan = Plan { level: Wanted::Exactly(self.level()), seed, ..Plan::new(link) };
        Rig::raise(&plan).map_err(no_link)
    }

    async fn command(&self, rig: &Rig, line: &str) -> anyhow::Result<ForkTimes> {
        let mut command = Command::new("sh");
        // A group of its own, so that the processes of a pipeline end together.
        command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        command.env("STENTOR_SERVER", rig.address(Side::Server).to_string());
        let started = Instant::now();
        let child = rig.spawn(Side::Device, command).context("the shell cannot be started")?;
        let (output, ended) = self.attend(child, line).await?;
        if !output.status.success() {
            let sentence = format!("`{line}` ended with {}: measure a command that succeeds", output.status);
            return Err(CommandFailure::not_done(sentence).into());
        }
        let seconds = ended.duration_since(started).as_secs_f64();
        Ok(ForkTimes { seconds, first_seconds: None, exchanges: 1 })
    }

    async fn service(&self, rig: &Rig, url: &Url) -> anyhow::Result<ForkTimes> {
        let (_forward, connect) = self.way(rig, url)?;
        let order = self.requests.order(url, connect, self.patience)?;
        let mut command =
            Command::new(std::env::current_exe().context("the path of this program is not known")?);
        command.arg("measure-caller").stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = rig.spawn(Side::Device, command).context("the caller cannot be started")?;
        give(&mut child, &order)?;
        let (output, _) = self.attend(child, url.as_str()).await?;
        let report: CallerReport = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("the caller of {url} ended with {} and no report", output.status))?;
        if let Some(failure) = report.failure {
            let sentence =
                format!("{url}: {failure}: look at the service, its address, --method and --header");
            return Err(CommandFailure::not_done(sentence).into());
        }
        let times: Samples = report.times_ns.iter().map(|ns| *ns as f64 / 1e9).collect();
        Ok(ForkTimes {
            seconds: times.quantile(0.5).context("no request was measured")?,
            first_seconds: Some(report.first_ns as f64 / 1e9),
            exchanges: u64::from(self.requests.requests) + u64::from(self.requests.warmup) + 1,
        })
    }

    /// Opens the way through the link to a service: to one on the server's side (`--serve`), or out of there to the URL's host.
    fn way(&self, rig: &Rig, url: &Url) -> anyhow::Result<(Option<Forward>, Option<SocketAddr>)> {
        if self.link.is_none() {
            return Ok((None, None));
        }
        let port = url.port_or_known_default().context("the URL has no port")?;
        if url.scheme() == "https" && url.domain().is_none() {
            let sentence = format!(
                "{url}: behind a link a certificate is checked by name: give the host's name in the URL"
            );
            return Err(CommandFailure::usage(sentence).into());
        }
        let connect = SocketAddr::new(rig.address(Side::Server), port);
        let is_served =
            !self.server.serve.is_empty() || self.server.forward.iter().any(|(open, _)| *open == port);
        let address = format!("{}:{port}", url.host_str().unwrap_or_default());
        let forward = (!is_served).then(|| server_side::open(rig, port, &address)).transpose()?;
        Ok((forward, Some(connect)))
    }

    /// Waits for a process, and ends its group after the time limit or when this future is dropped.
    async fn attend(&self, child: Child, name: &str) -> anyhow::Result<(Output, Instant)> {
        let mut ending = EndOnDrop(Some(child.id()));
        let waiting = tokio::task::spawn_blocking(move || {
            child.wait_with_output().map(|output| (output, Instant::now()))
        });
        let Ok(ended) = tokio::time::timeout(self.patience, waiting).await else {
            let seconds = self.patience.as_secs();
            let sentence = format!("{name} did not end within {seconds} s: raise --patience-seconds");
            return Err(CommandFailure::not_done(sentence).into());
        };
        ending.0 = None;
        Ok(ended??)
    }
}

/// Returns the error of a machine without links, with the way out.
fn no_link(error: RigError) -> anyhow::Error {
    match error {
        RigError::NoLevel { .. } => {
            let sentence = format!("{error}; or leave --link out, and measure on the machine's own network");
            CommandFailure::new(Exit::NotTestable, sentence).into()
        }
        error => refusal(error),
    }
}

/// Ends a group of processes when it is dropped.
struct EndOnDrop(Option<u32>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if let Some(process) = self.0.and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())) {
            // An error means that it has ended already, as intended.
            let _ = rustix::process::kill_process_group(process, rustix::process::Signal::KILL);
        }
    }
}

fn give(child: &mut Child, order: &CallerOrder) -> anyhow::Result<()> {
    let mut input = child.stdin.take().context("the caller has no standard input")?;
    Ok(input.write_all(serde_json::to_string(order)?.as_bytes())?)
}

/// Reads a limit of lateness in milliseconds.
pub(super) fn lateness(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=60_000.0).contains(&value) { Ok(value) } else { Err("from 0 to 60000".to_owned()) }
}
