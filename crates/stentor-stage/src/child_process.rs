//! A process that this one started, and that never outlives it.

use crate::failure::CommandFailure;
use crate::programs::Program;
use anyhow::Context;
use procfs::process::Process;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Short beside a start or an end, so that measurements around them do not include this pause.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
const START_LIMIT: Duration = Duration::from_secs(30);
/// A server that is requested to end first settles the deliveries in flight, and a push service may take its time to answer.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);
const SHOWN_LINES: usize = 5;

/// The resource usage of a process, as the operating system counted it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResourceUsage {
    /// Seconds of CPU, in user and in system mode.
    pub cpu_seconds: f64,
    /// The most memory that was resident (VmHWM).
    pub peak_rss_bytes: u64,
}

impl ResourceUsage {
    /// Adds the usage of another process.
    pub fn with(self, other: Self) -> Self {
        Self {
            cpu_seconds: self.cpu_seconds + other.cpu_seconds,
            peak_rss_bytes: self.peak_rss_bytes + other.peak_rss_bytes,
        }
    }
}

/// A running child; dropping it kills it.
pub struct ChildProcess {
    name: &'static str,
    process: std::process::Child,
    log: PathBuf,
    peak_rss_bytes: u64,
}

impl ChildProcess {
    /// Starts the product with these arguments, away from the user's environment. Its output is appended to a log.
    pub fn start(name: &'static str, arguments: &[OsString], log: &Path) -> anyhow::Result<Self> {
        Self::start_with(name, arguments, &[], log)
    }

    /// Starts the product with variables of its own.
    pub fn start_with(
        name: &'static str,
        arguments: &[OsString],
        environment: &[(&'static str, OsString)],
        log: &Path,
    ) -> anyhow::Result<Self> {
        Self::start_behind(name, &[Program::Product.find()?.into()], arguments, environment, log)
    }

    /// Starts a program behind other commands. `words` ends with the program; the commands before it replace themselves by it, such as
    /// those that enter a namespace.
    pub fn start_behind(
        name: &'static str,
        words: &[OsString],
        arguments: &[OsString],
        environment: &[(&'static str, OsString)],
        log: &Path,
    ) -> anyhow::Result<Self> {
        let (first, others) = words.split_first().context("no program is named")?;
        let mut command = Command::new(first);
        command.args(others).args(arguments);
        command.envs(environment.iter().map(|(variable, value)| (variable, value)));
        Self::spawn(name, command, log)
    }

    /// Starts another program, away from the user's environment; its output is appended to a log.
    pub fn spawn(name: &'static str, mut command: Command, log: &Path) -> anyhow::Result<Self> {
        let file = File::options().create(true).append(true).open(log);
        let file = file.with_context(|| format!("{} cannot be written", log.display()))?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        without_settings(&mut command);
        let process = command.spawn().with_context(|| format!("the {name} cannot be started"))?;
        Ok(Self { name, process, log: log.to_owned(), peak_rss_bytes: 0 })
    }

    /// The operating system's number of the process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Fails with the end of the log if the process has ended by itself.
    pub fn check_alive(&mut self) -> anyhow::Result<()> {
        match self.process.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                let sentence = format!(
                    "the {} ended by itself ({status}); its log ends with:\n{}",
                    self.name,
                    self.log_end()
                );
                Err(CommandFailure::not_done(sentence).into())
            }
            Err(error) => Err(error).context("a child cannot be waited for"),
        }
    }

    /// Waits for the file that the process writes when it is ready, and reads it as JSON.
    pub async fn ready(&mut self, file: &Path) -> anyhow::Result<serde_json::Value> {
        let started = Instant::now();
        loop {
            if let Ok(text) = std::fs::read_to_string(file) {
                return Ok(serde_json::from_str(&text)?);
            }
            self.check_alive()?;
            if started.elapsed() > START_LIMIT {
                let sentence =
                    format!("the {} does not start; its log ends with:\n{}", self.name, self.log_end());
                return Err(CommandFailure::not_done(sentence).into());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Reads the process' usage so far from the operating system.
    pub fn usage(&mut self) -> ResourceUsage {
        let process = Process::new(self.process.id().cast_signed());
        let Ok(process) = process else { return self.past(0.0) };
        if let Ok(status) = process.status() {
            self.peak_rss_bytes = self.peak_rss_bytes.max(status.vmhwm.unwrap_or(0) * 1024);
        }
        let ticks = process.stat().map(|stat| stat.utime + stat.stime).unwrap_or(0);
        self.past(ticks as f64 / procfs::ticks_per_second() as f64)
    }

    /// Waits until the process has ended by itself and returns its usage. Fails if that takes too long or the process fails.
    pub fn finish(mut self, limit: Duration) -> anyhow::Result<ResourceUsage> {
        let started = Instant::now();
        while !self.is_over() {
            if started.elapsed() > limit {
                let sentence = format!("the {} does not end within {limit:?}", self.name);
                return Err(CommandFailure::not_done(sentence).into());
            }
            // The peak of its memory can only be read while it runs.
            self.usage();
            std::thread::sleep(POLL_INTERVAL);
        }
        // Not waited for yet, so the operating system still knows the final CPU time.
        let usage = self.usage();
        let status = self.process.wait()?;
        if status.success() {
            return Ok(usage);
        }
        let sentence = format!("the {} failed ({status}); its log ends with:\n{}", self.name, self.log_end());
        Err(CommandFailure::not_done(sentence).into())
    }

    /// Kills the process (kill -9) and returns its final usage.
    pub fn kill(mut self) -> ResourceUsage {
        // Before the signal: the peak of its memory is gone with the process.
        self.usage();
        self.end(Signal::KILL, DRAIN_LIMIT)
    }

    /// Requests the process to end, kills it if it does not, and returns its usage.
    pub fn terminate(mut self) -> ResourceUsage {
        // Before the signal: the peak of its memory is gone with the process.
        self.usage();
        self.end(Signal::TERM, DRAIN_LIMIT)
    }

    /// Stops it where it is; nothing else notices but by its silence.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Resumes the process.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn past(&self, cpu_seconds: f64) -> ResourceUsage {
        ResourceUsage { cpu_seconds, peak_rss_bytes: self.peak_rss_bytes }
    }

    fn end(&mut self, signal: Signal, limit: Duration) -> ResourceUsage {
        self.signal(signal);
        let started_at = Instant::now();
        while !self.is_over() {
            if started_at.elapsed() > limit {
                self.signal(Signal::KILL);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        // Not waited for yet, so the operating system still knows the final CPU time.
        let usage = self.usage();
        let _ = self.process.wait();
        usage
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.process.id().cast_signed()) {
            // An error means that the process has already ended.
            let _ = kill_process(pid, signal);
        }
    }

    fn is_over(&self) -> bool {
        let stat = Process::new(self.process.id().cast_signed()).and_then(|process| process.stat());
        stat.map_or(true, |stat| matches!(stat.state, 'Z' | 'X'))
    }

    /// The end of its log.
    pub fn log_end(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
    }
}

/// Keeps the user's settings away from a process that is measured.
pub fn without_settings(command: &mut Command) {
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("STENTOR_") {
            command.env_remove(variable);
        }
    }
}

/// Returns the resident memory of a process, from the operating system.
pub fn rss_bytes(process: u32) -> anyhow::Result<u64> {
    let status = Process::new(process.cast_signed()).and_then(|process| process.status());
    Ok(status.context("the process has ended")?.vmrss.unwrap_or(0) * 1024)
}

/// Returns the processor time of a process so far, from the operating system.
pub fn cpu_seconds(process: u32) -> anyhow::Result<f64> {
    let stat = Process::new(process.cast_signed()).and_then(|process| process.stat());
    let stat = stat.context("the process has ended")?;
    Ok((stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64)
}

/// Returns the load average of the last minute.
pub fn load_average() -> f64 {
    let line = stentor_machine::facts::line("/proc/loadavg");
    line.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // Killed first, because the wait has no limit. Both calls fail only if the process is already gone.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
