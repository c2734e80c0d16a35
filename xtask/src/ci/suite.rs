//! Runs the test programs, and measures them.
//!
//! The programs of the stores wait for the disk and for PostgreSQL most of the time. Therefore they run beside the small programs. The
//! stories of the server use all processors and have time limits. Therefore nothing runs beside them.

use std::io::Write;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::thread;
use std::time::Instant;

use super::failures::{FailureLog, StepFailure};
use super::output::{self, EndedCommand};
use super::programs::{self, TestProgram};
use super::tally::{HarnessLog, TestCounts, TestTime};
use super::tiers::{FULL_ONLY, FullOnly};
use super::usage::Cost;
use crate::tidy::PromisedTests;
use crate::workspace::Workspace;

/// Exit code of libtest if tests failed.
const TESTS_FAILED_CODE: i32 = 101;

/// One test program that was run.
#[derive(Debug)]
pub(crate) struct EndedProgram {
    pub(crate) selection: String,
    pub(crate) counts: TestCounts,
    pub(crate) cost: Cost,
    pub(crate) times: Vec<TestTime>,
    /// Reasons of tests that did not run because something is missing here.
    pub(crate) reasons: Vec<String>,
}

/// Tests that a row of the table left out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) row: &'static FullOnly,
    pub(crate) count: usize,
}

/// All test programs, run.
#[derive(Debug, Default)]
pub(crate) struct EndedSuite {
    pub(crate) programs: Vec<EndedProgram>,
    /// Empty with `--full`.
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) failures: Vec<StepFailure>,
}

impl EndedSuite {
    /// Returns the sum over all programs.
    pub(crate) fn counts(&self) -> TestCounts {
        let mut sum = TestCounts::default();
        self.programs.iter().for_each(|program| sum += program.counts);
        sum
    }

    fn extend(&mut self, other: Self) {
        self.programs.extend(other.programs);
        self.failures.extend(other.failures);
    }
}

/// The tests of a program that run.
struct TestChoice {
    wanted: usize,
    left_out: Vec<String>,
}

/// A test program with its tests that run.
struct ChosenProgram {
    program: TestProgram,
    choice: TestChoice,
}

impl ChosenProgram {
    /// Returns true if it waits for the disk most of the time.
    fn waits(&self) -> bool {
        self.program.package == "stentor-storage"
    }

    /// Returns true if it uses all processors for minutes.
    fn is_long(&self) -> bool {
        ["stentor", "stentor-server"].contains(&self.program.package.as_str())
            && self.program.selection.contains("--test")
    }
}

/// Runs all tests, or without `is_full` those of every run, with `threads` concurrent tests of one program.
pub(crate) fn run(workspace: &Workspace, is_full: bool, threads: &str) -> anyhow::Result<EndedSuite> {
    let promised = PromisedTests::load(workspace)?;
    let mut counts = vec![0; FULL_ONLY.len()];
    let mut chosen = Vec::new();
    for program in programs::find(workspace)? {
        let choice = choose(&program.package, program.tests()?, &promised, &mut counts);
        let choice = if is_full { choice.with_all() } else { choice };
        chosen.push(ChosenProgram { program, choice });
    }
    let runner = Runner { workspace, threads };
    let (waiting, others): (Vec<_>, Vec<_>) = chosen.into_iter().partition(ChosenProgram::waits);
    let (long, small): (Vec<_>, Vec<_>) = others.into_iter().partition(ChosenProgram::is_long);
    let mut suite = thread::scope(|scope| {
        let beside = scope.spawn(|| runner.run_quietly(&waiting));
        let mut suite = runner.run(&small, &mut std::io::stdout())?;
        let (ended, output) = beside.join().map_err(|_| anyhow::anyhow!("a lane of tests panicked"))??;
        std::io::stdout().write_all(&output)?;
        suite.extend(ended);
        anyhow::Ok(suite)
    })?;
    suite.extend(runner.run(&long, &mut std::io::stdout())?);
    let rows = || FULL_ONLY.iter().zip(&counts);
    let idle: Vec<String> = rows().filter(|(_, count)| **count == 0).map(|(row, _)| row.name()).collect();
    if !idle.is_empty() {
        let fix = "no test has such a path: mend or remove these rows in xtask/src/ci/tiers.rs".to_owned();
        suite.failures.push(StepFailure { name: "tiers".to_owned(), lines: [vec![fix], idle].concat() });
    }
    if !is_full {
        suite.left_out = rows().map(|(row, count)| LeftOut { row, count: *count }).collect();
    }
    Ok(suite)
}

/// Chooses the tests of a program, and adds to `counts` the number of tests of each row of the table.
fn choose(package: &str, tests: Vec<String>, promised: &PromisedTests, counts: &mut [usize]) -> TestChoice {
    let mut choice = TestChoice { wanted: 0, left_out: Vec::new() };
    for test in tests {
        let mut rows = FULL_ONLY.iter().zip(&mut *counts);
        match rows.find(|(row, _)| row.takes(package, &test, promised)) {
            Some((_, count)) => {
                *count += 1;
                choice.left_out.push(test);
            }
            None => choice.wanted += 1,
        }
    }
    choice
}

impl TestChoice {
    fn with_all(self) -> Self {
        Self { wanted: self.wanted + self.left_out.len(), left_out: Vec::new() }
    }
}

/// Runs test programs.
#[derive(Clone, Copy)]
struct Runner<'a> {
    workspace: &'a Workspace,
    /// Number of concurrent tests of one program.
    threads: &'a str,
}

impl Runner<'_> {
    /// Runs programs one after the other; their output goes to `out` as it comes.
    fn run(self, chosen: &[ChosenProgram], out: &mut impl Write) -> anyhow::Result<EndedSuite> {
        let mut suite = EndedSuite::default();
        for one in chosen {
            suite.programs.push(self.run_program(one, out, &mut suite.failures)?);
        }
        Ok(suite)
    }

    /// Runs programs one after the other; returns their output, so that it does not mix with that of the programs beside them.
    fn run_quietly(self, chosen: &[ChosenProgram]) -> anyhow::Result<(EndedSuite, Vec<u8>)> {
        let mut output = Vec::new();
        let suite = self.run(chosen, &mut output)?;
        Ok((suite, output))
    }

    fn run_program(
        self,
        ChosenProgram { program, choice }: &ChosenProgram,
        out: &mut impl Write,
        failures: &mut Vec<StepFailure>,
    ) -> anyhow::Result<EndedProgram> {
        let mut command = program.command();
        // Times of tests are an unstable option of the harness, which this variable allows. The compiler never sees it.
        command.env("RUSTC_BOOTSTRAP", "1").args(["-Zunstable-options", "--report-time"]);
        command.env("RUST_TEST_THREADS", self.threads);
        if !choice.left_out.is_empty() {
            command.arg("--exact");
            command.args(choice.left_out.iter().flat_map(|test| ["--skip", test]));
        }
        let (mut failure_log, mut harness_log) = (FailureLog::default(), HarnessLog::default());
        let headline = program.headline(self.workspace);
        writeln!(out, "{headline}")?;
        failure_log.note(&headline);
        let began = Instant::now();
        let EndedCommand { status, processor_seconds } = output::forward(command, out, |line| {
            failure_log.note(line);
            harness_log.note(line);
        })?;
        let cost = Cost { wall_seconds: began.elapsed().as_secs_f64(), processor_seconds };
        if !status.success() {
            for line in farewell(program, status) {
                writeln!(out, "{line}")?;
                failure_log.note(&line);
            }
            failures.extend(failure_log.failures(&program.selection));
        }
        out.flush()?;
        let mut counts = harness_log.counts(choice.wanted);
        counts.skipped += choice.left_out.len();
        let HarnessLog { times, reasons, .. } = harness_log;
        Ok(EndedProgram { selection: program.selection.clone(), counts, cost, times, reasons })
    }
}

/// Returns cargo's lines about a program that failed: how its tests are run again, and how it ended if not by a verdict.
fn farewell(program: &TestProgram, status: ExitStatus) -> Vec<String> {
    let mut lines = vec![format!("error: test failed, to rerun pass `{}`", program.selection)];
    if status.code() != Some(TESTS_FAILED_CODE) || status.signal().is_some() {
        lines.push(format!(
            "  process didn't exit successfully: `{}` ({status})",
            program.executable.display()
        ));
    }
    lines
}

#[cfg(test)]
mod tests;
