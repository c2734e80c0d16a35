//! `cargo xtask ci`: every check and every test, one step after the other; what failed is repeated at the end, above one
//! line for each step.

mod failures;
mod output;
mod repeated;

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use self::failures::{FailureLog, StepFailure};

use crate::workspace::Workspace;
use crate::{codegen, dist, tidy};

/// The variable by which the test harness is told how many tests run at the same time.
const TEST_THREADS: &str = "RUST_TEST_THREADS";
/// With one for each processor a half of two processors was idle in the tests of the binary, with two a fifth.
const TESTS_PER_PROCESSOR: usize = 2;

/// What one step runs.
enum StepWork {
    /// A cargo command, with variables that only it sees.
    Cargo { arguments: &'static [&'static str], variables: &'static [(&'static str, &'static str)] },
    /// The house rules, in this process.
    Tidy,
    /// The generated references, asked of the binary that the tests have built.
    Codegen,
    /// The static binary: built, judged and tried.
    Dist,
    /// A script of the repository.
    Script(&'static str),
}

/// A named step.
struct CiStep {
    name: &'static str,
    work: StepWork,
}

/// How a step ended.
struct StepEnd {
    name: &'static str,
    passed: bool,
    took: Duration,
}

/// The steps of every run. They share one target folder and differ in no compiler flag, so nothing is built twice:
/// clippy's and rustdoc's strictness are arguments to those tools alone.
const STEPS: &[CiStep] = &[
    CiStep { name: "fmt", work: cargo(&["fmt", "--all", "--check"]) },
    CiStep { name: "tidy", work: StepWork::Tidy },
    CiStep {
        name: "clippy",
        work: cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    },
    CiStep { name: "test", work: cargo(&["test", "--workspace", "--no-fail-fast"]) },
    CiStep { name: "codegen", work: StepWork::Codegen },
    CiStep {
        name: "doc",
        work: StepWork::Cargo {
            arguments: &["doc", "--workspace", "--no-deps"],
            variables: &[("RUSTDOCFLAGS", "-D warnings")],
        },
    },
];

/// The slow steps of `--full`; each tool must be installed.
const FULL_STEPS: &[CiStep] = &[
    CiStep { name: "deny", work: cargo(&["deny", "--workspace", "check"]) },
    CiStep { name: "dist", work: StepWork::Dist },
    // The version before this one is built from the history, which a shallow clone has not.
    CiStep { name: "upgrade", work: StepWork::Script("lab/upgrade/run") },
];

/// Runs all steps, also those behind a failed one, prints what failed and the summary, and returns whether all passed.
pub(crate) fn run(workspace: &Workspace, full: bool) -> anyhow::Result<bool> {
    let further = if full { FULL_STEPS } else { &[] };
    let (mut ended, mut failures) = (Vec::new(), Vec::new());
    for step in STEPS.iter().chain(further) {
        println!("\n== {} ==", step.name);
        let started = Instant::now();
        let failed = perform(workspace, step).unwrap_or_else(|error| {
            println!("{error:#}");
            vec![StepFailure { name: step.name.to_owned(), lines: vec![format!("{error:#}")] }]
        });
        let passed = failed.is_empty();
        failures.extend(failed);
        let took = started.elapsed();
        println!("== {}: {} in {:.1} s", step.name, verdict(passed), took.as_secs_f64());
        ended.push(StepEnd { name: step.name, passed, took });
    }
    if !failures.is_empty() {
        println!("\n{}", repeated::text(&failures));
    }
    println!("\n{}", summary(&ended));
    Ok(ended.iter().all(|step| step.passed))
}

/// Returns how many tests of one program run at the same time: many of them wait for other processes, for most of their time.
fn test_threads() -> usize {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    processors * TESTS_PER_PROCESSOR
}

const fn cargo(arguments: &'static [&'static str]) -> StepWork {
    StepWork::Cargo { arguments, variables: &[] }
}

/// Runs one step; returns what failed.
fn perform(workspace: &Workspace, step: &CiStep) -> anyhow::Result<Vec<StepFailure>> {
    let failure = |lines: Vec<String>| StepFailure { name: step.name.to_owned(), lines };
    let in_process =
        |problems: Vec<String>| if problems.is_empty() { vec![] } else { vec![failure(problems)] };
    match &step.work {
        StepWork::Tidy => {
            let findings = tidy::check(workspace)?;
            Ok(in_process(findings.iter().map(ToString::to_string).collect()))
        }
        StepWork::Codegen => {
            let built = Some(codegen::debug_binary(workspace)).filter(|binary| binary.is_file());
            Ok(in_process(codegen::check(workspace, built)?))
        }
        StepWork::Dist => dist::run(workspace, None, None).map(|_| vec![]),
        StepWork::Cargo { arguments, variables } => {
            let mut command = Command::new("cargo");
            command.args(*arguments).envs(variables.iter().copied());
            if std::env::var_os(TEST_THREADS).is_none() {
                command.env(TEST_THREADS, test_threads().to_string());
            }
            forward(workspace, step, command)
        }
        StepWork::Script(path) => forward(workspace, step, Command::new(workspace.root.join(path))),
    }
}

/// Runs a step's command in the repository's folder; returns what failed.
fn forward(workspace: &Workspace, step: &CiStep, mut command: Command) -> anyhow::Result<Vec<StepFailure>> {
    command.current_dir(&workspace.root);
    let mut log = FailureLog::default();
    let succeeded = output::forward(command, &mut std::io::stdout(), |line| log.note(line))?;
    Ok(if succeeded { vec![] } else { log.failures(step.name) })
}

fn verdict(passed: bool) -> &'static str {
    if passed { "passed" } else { "FAILED" }
}

/// Writes one line per step and a last line with the verdict.
fn summary(ended: &[StepEnd]) -> String {
    let mut lines: Vec<String> = ended
        .iter()
        .map(|step| format!("{:<8} {} {:>7.1} s", step.name, verdict(step.passed), step.took.as_secs_f64()))
        .collect();
    let total: f64 = ended.iter().map(|step| step.took.as_secs_f64()).sum();
    let failed: Vec<&str> = ended.iter().filter(|step| !step.passed).map(|step| step.name).collect();
    lines.push(match failed.as_slice() {
        [] => format!("ci: all {} steps passed in {total:.0} s", ended.len()),
        failed => format!("ci: FAILED in {total:.0} s: {}", failed.join(", ")),
    });
    lines.join("\n")
}

#[cfg(test)]
mod tests;
