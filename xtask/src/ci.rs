//! `cargo xtask ci`: every check and every test that a change must pass, one step after the other. With `--full` also the steps that take
//! long or need many tools. Failures are repeated at the end, above the table of steps and the sum of tests.

mod failures;
mod output;
mod programs;
mod repeated;
mod report;
mod suite;
mod tally;
mod tiers;
mod usage;

use std::process::{Command, Stdio};
use std::thread;

use self::failures::{FailureLog, StepFailure};
use self::tally::TestCounts;
use self::usage::{Cost, Meter};
use crate::package::{self, Arch, PackageRequest};
use crate::workspace::Workspace;
use crate::{book, codegen, tidy};

/// The variable that sets the number of concurrent tests of the test harness.
const TEST_THREADS: &str = "RUST_TEST_THREADS";
/// With one for each processor a half of two processors was idle in the tests of the binary, with two a fifth.
const TESTS_PER_PROCESSOR: usize = 2;
/// The variable that lists the steps and tests that may not be skipped.
const REQUIRED: &str = "STENTOR_TEST_REQUIRE";

/// Probes for the compiler of static binaries.
const PACKAGE_PROBE: &str = r#"test -x "${CARGO_TARGET_DIR:-target}/packaging/venv/bin/cargo-zigbuild""#;
/// Probes for mdBook.
const BOOK_PROBE: &str = r#""${CARGO_TARGET_DIR:-target}/mdbook/bin/mdbook" --version"#;
/// Probes for PostgreSQL, and for the commit of the older version, which a shallow clone does not have.
const UPGRADE_PROBE: &str = r#"ls /usr/lib/postgresql/*/bin/initdb &&
    git rev-parse --verify --quiet "$(cat lab/upgrade/older)^{commit}""#;

/// The work of one step.
enum StepWork {
    /// A cargo command, with variables for it alone.
    Cargo { arguments: &'static [&'static str], variables: &'static [(&'static str, &'static str)] },
    /// The house rules, in this process.
    Tidy,
    /// The tests of all programs that were built.
    Tests,
    /// The generated references, written by the built binary.
    Codegen,
    /// The files of a release for this processor: built, judged and tried.
    Package,
    /// The site of the pages: built, and its links checked.
    Book,
    /// A script of the repository.
    Script(&'static str),
}

/// A tool without which a step is skipped.
struct NeededTool {
    /// The word for `STENTOR_TEST_REQUIRE`, with which its absence is a failure.
    word: &'static str,
    /// A command that succeeds if the tool is present.
    probe: &'static [&'static str],
    /// The way to get it.
    remedy: &'static str,
}

/// A named step.
struct CiStep {
    name: &'static str,
    work: StepWork,
    needs: Option<NeededTool>,
}

/// The end of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StepVerdict {
    Passed,
    Failed,
    /// With the reason.
    Skipped(String),
}

/// A step that ended.
struct EndedStep {
    name: &'static str,
    verdict: StepVerdict,
    counts: TestCounts,
    cost: Cost,
}

/// The steps of every run. They share one target folder and differ in no compiler flag, so nothing is built twice.
const STEPS: &[CiStep] = &[
    step("fmt", cargo(&["fmt", "--all", "--check"])),
    step("tidy", StepWork::Tidy),
    step("build", StepWork::Cargo { arguments: &programs::BUILD, variables: &programs::LINTED }),
    step("test", StepWork::Tests),
    step("codegen", StepWork::Codegen),
];

/// The further steps of `--full`.
const FULL_STEPS: &[CiStep] = &[
    step(
        "doc",
        StepWork::Cargo {
            arguments: &["doc", "--workspace", "--no-deps"],
            variables: &[("RUSTDOCFLAGS", "-D warnings")],
        },
    ),
    CiStep {
        name: "deny",
        work: cargo(&["deny", "--workspace", "check"]),
        needs: Some(NeededTool {
            word: "deny",
            probe: &["cargo", "deny", "--version"],
            remedy: "cargo install --locked cargo-deny",
        }),
    },
    CiStep {
        name: "package",
        work: StepWork::Package,
        needs: Some(NeededTool {
            word: "package",
            probe: &["sh", "-c", PACKAGE_PROBE],
            remedy: "packaging/install",
        }),
    },
    CiStep {
        name: "book",
        work: StepWork::Book,
        needs: Some(NeededTool {
            word: "book",
            probe: &["sh", "-c", BOOK_PROBE],
            remedy: "docs/mdbook/install",
        }),
    },
    CiStep {
        name: "upgrade",
        work: StepWork::Script("lab/upgrade/run"),
        needs: Some(NeededTool {
            word: "older",
            probe: &["sh", "-c", UPGRADE_PROBE],
            remedy: "postgresql 15 or newer, and the whole history (git fetch --unshallow)",
        }),
    },
];

/// Output of the steps for the end of the run.
#[derive(Default)]
struct RunLog {
    failures: Vec<StepFailure>,
    /// Pages about the tests.
    pages: Vec<String>,
}

/// Runs all steps, including those after a failed one, prints the failures and the tables, and returns true if all passed.
pub(crate) fn run(workspace: &Workspace, is_full: bool) -> anyhow::Result<bool> {
    let before = usage::since_process_start();
    let further = if is_full { FULL_STEPS } else { &[] };
    let (mut ended, mut log) = (Vec::new(), RunLog::default());
    for step in STEPS.iter().chain(further) {
        println!("\n== {} ==", step.name);
        let one = run_step(workspace, step, is_full, &mut log);
        println!("== {}: {} in {:.1} s", step.name, one.verdict.word(), one.cost.wall_seconds);
        ended.push(one);
    }
    let mut pages = log.pages;
    if !log.failures.is_empty() {
        pages.push(repeated::text(&log.failures));
    }
    pages.extend([report::steps(before, &ended), report::last_line(&ended)]);
    pages.iter().for_each(|page| println!("\n{page}"));
    Ok(report::is_passed(&ended))
}

impl StepVerdict {
    fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Skipped(_) => "skipped",
        }
    }
}

impl NeededTool {
    /// Returns the reason for which the step cannot run.
    fn missing(&self, workspace: &Workspace) -> Option<String> {
        let [program, arguments @ ..] = self.probe else { return None };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&workspace.root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let is_there = command.status().is_ok_and(|status| status.success());
        (!is_there).then(|| format!("missing: {}", self.remedy))
    }

    fn is_required(&self) -> bool {
        let required = std::env::var(REQUIRED).unwrap_or_default();
        required.split(',').any(|word| word.trim() == self.word)
    }
}

/// Builds a step that needs no tool.
const fn step(name: &'static str, work: StepWork) -> CiStep {
    CiStep { name, work, needs: None }
}

const fn cargo(arguments: &'static [&'static str]) -> StepWork {
    StepWork::Cargo { arguments, variables: &[] }
}

fn run_step(workspace: &Workspace, step: &CiStep, is_full: bool, log: &mut RunLog) -> EndedStep {
    let meter = Meter::start();
    let missing = step.needs.as_ref().and_then(|tool| Some((tool.missing(workspace)?, tool.is_required())));
    let (failed, counts, skipped) = match missing {
        Some((why, false)) => (vec![], TestCounts::default(), Some(why)),
        Some((why, true)) => (vec![failure(step, vec![why])], TestCounts::default(), None),
        None => {
            let performed = perform(workspace, step, is_full, log).unwrap_or_else(|error| {
                println!("{error:#}");
                (vec![failure(step, vec![format!("{error:#}")])], TestCounts::default())
            });
            (performed.0, performed.1, None)
        }
    };
    let verdict = match (skipped, failed.is_empty()) {
        (Some(why), _) => StepVerdict::Skipped(why),
        (None, true) => StepVerdict::Passed,
        (None, false) => StepVerdict::Failed,
    };
    log.failures.extend(failed);
    EndedStep { name: step.name, verdict, counts, cost: meter.read() }
}

fn failure(step: &CiStep, lines: Vec<String>) -> StepFailure {
    StepFailure { name: step.name.to_owned(), lines }
}

/// Runs one step; returns the failures and the counts of its tests.
fn perform(
    workspace: &Workspace,
    step: &CiStep,
    is_full: bool,
    log: &mut RunLog,
) -> anyhow::Result<(Vec<StepFailure>, TestCounts)> {
    let in_process =
        |problems: Vec<String>| if problems.is_empty() { vec![] } else { vec![failure(step, problems)] };
    let failed = match &step.work {
        StepWork::Tidy => in_process(tidy::check(workspace)?.iter().map(ToString::to_string).collect()),
        StepWork::Tests => {
            let suite = suite::run(workspace, is_full, &test_threads())?;
            log.pages.extend([report::slowest(&suite), report::programs(&suite), report::skipped(&suite)]);
            return Ok((suite.failures.clone(), suite.counts()));
        }
        StepWork::Codegen => {
            let built = Some(codegen::debug_binary(workspace)).filter(|binary| binary.is_file());
            in_process(codegen::check(workspace, built)?)
        }
        StepWork::Book => in_process(book::build(workspace)?),
        StepWork::Package => {
            let request =
                PackageRequest { archs: vec![Arch::X86_64], binaries: vec![], jobs: None, json: false };
            package::run(workspace, &request).map(|_| vec![])?
        }
        StepWork::Cargo { arguments, variables } => {
            let mut command = Command::new("cargo");
            command.args(*arguments).envs(variables.iter().copied());
            forward(workspace, step, command)?
        }
        StepWork::Script(path) => forward(workspace, step, Command::new(workspace.root.join(path)))?,
    };
    Ok((failed, TestCounts::default()))
}

/// Returns the number of concurrent tests of one program: many of them spend most of their time waiting for other processes.
fn test_threads() -> String {
    std::env::var(TEST_THREADS).unwrap_or_else(|_| {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        (processors * TESTS_PER_PROCESSOR).to_string()
    })
}

/// Runs a step's command in the repository's folder; returns the failures.
fn forward(workspace: &Workspace, step: &CiStep, mut command: Command) -> anyhow::Result<Vec<StepFailure>> {
    command.current_dir(&workspace.root);
    let mut log = FailureLog::default();
    let ended = output::forward(command, &mut std::io::stdout(), |line| log.note(line))?;
    Ok(if ended.status.success() { vec![] } else { log.failures(step.name) })
}

#[cfg(test)]
mod tests;
