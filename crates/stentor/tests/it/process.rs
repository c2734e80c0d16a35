//! The binary as a user starts it, and processes that end with the test.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

/// The binary of this version.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_stentor");

/// Prepares the binary without the environment of the tests.
pub(crate) fn stentor(arguments: &[&str]) -> Command {
    prepared(Path::new(PROGRAM), arguments)
}

fn prepared(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("STENTOR_") {
            command.env_remove(variable);
        }
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    stentor(arguments).output().unwrap()
}

/// Runs a command to its end and returns its exit code and the object on its last line.
pub(crate) fn run_json(arguments: &[&str]) -> (i32, Value) {
    let output = stentor(arguments).arg("--json").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or_else(|| panic!("{arguments:?} printed nothing: {errors}"));
    let object = serde_json::from_str(last).unwrap_or_else(|_| panic!("{arguments:?} printed {last}"));
    (output.status.code().unwrap(), object)
}

/// A process that reports its readiness on its first line, and ends with the test.
pub(crate) struct Process {
    child: Child,
    /// Its readiness report.
    pub(crate) ready: Value,
    log: PathBuf,
}

impl Process {
    /// Starts it; its log goes to a file.
    pub(crate) fn start(arguments: &[&str], log: &Path) -> Self {
        Self::start_in(&[], arguments, log)
    }

    /// Starts it with some variables in its environment.
    pub(crate) fn start_in(environment: &[(&str, &str)], arguments: &[&str], log: &Path) -> Self {
        Self::start_program(Path::new(PROGRAM), environment, arguments, log)
    }

    /// Starts this or another version of the binary.
    pub(crate) fn start_program(
        program: &Path,
        environment: &[(&str, &str)],
        arguments: &[&str],
        log: &Path,
    ) -> Self {
        let errors = std::fs::File::options().create(true).append(true).open(log).unwrap();
        let mut command = prepared(program, arguments);
        command.envs(environment.iter().copied());
        let mut child = command.arg("--json").stdout(Stdio::piped()).stderr(errors).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let log = log.to_owned();
        let ready = serde_json::from_str(&line).unwrap_or_else(|_| {
            let _ = child.kill();
            panic!("{arguments:?} did not start: {}", std::fs::read_to_string(&log).unwrap_or_default())
        });
        Self { child, ready, log }
    }

    /// Returns its URL.
    pub(crate) fn url(&self) -> &str {
        self.ready["url"].as_str().unwrap()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id().cast_signed()).unwrap(), signal).unwrap();
    }

    /// Returns the current resident memory, in bytes.
    pub(crate) fn rss_bytes(&self) -> u64 {
        self.memory_bytes("VmRSS:")
    }

    /// Returns the peak resident memory, in bytes.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.memory_bytes("VmHWM:")
    }

    fn memory_bytes(&self, name: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Kills it (kill -9) and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.wait();
    }

    /// Returns its log so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
