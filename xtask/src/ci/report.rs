//! The report at the end of a run: the slowest tests, the programs, skipped tests, the steps, and the sum of tests.

use super::suite::{EndedProgram, EndedSuite};
use super::tally::TestCounts;
use super::usage::Cost;
use super::{EndedStep, StepVerdict};

/// Number of tests in the list of the slowest.
const SLOWEST_COUNT: usize = 30;

/// Returns the slowest tests, the slowest first.
pub(crate) fn slowest(suite: &EndedSuite) -> String {
    let times = |program: &EndedProgram| -> Vec<(f64, String)> {
        let line = |seconds, test: &str| (seconds, format!("{} {test}", program.selection));
        program.times.iter().map(|time| line(time.seconds, &time.test)).collect()
    };
    let mut all: Vec<(f64, String)> = suite.programs.iter().flat_map(times).collect();
    all.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let title = "== the slowest tests: seconds from begin to end, while other tests of the program ran ==";
    let lines = all.iter().take(SLOWEST_COUNT).map(|(seconds, test)| format!("{seconds:>8.1} s  {test}"));
    joined(title, lines)
}

/// Returns the cost of each test program, the dearest first.
pub(crate) fn programs(suite: &EndedSuite) -> String {
    let mut programs: Vec<&EndedProgram> = suite.programs.iter().collect();
    programs.sort_by(|one, other| other.cost.processor_seconds.total_cmp(&one.cost.processor_seconds));
    let title =
        "== the test programs: seconds, and processor seconds with all processes for which they waited ==";
    let line = |one: &&EndedProgram| format!("{}  {}: {}", costs(one.cost), one.selection, one.counts);
    joined(title, programs.iter().map(line))
}

/// Returns the tests that did not run, with the reasons.
pub(crate) fn skipped(suite: &EndedSuite) -> String {
    let left_out = suite.left_out.iter().map(|left_out| {
        format!("{:>5}  {}: {} (runs in --full)", left_out.count, left_out.row.name(), left_out.row.reason)
    });
    let missing = suite.programs.iter().flat_map(|program| {
        program.reasons.iter().map(|reason| format!("    1  {}: {reason}", program.selection))
    });
    joined("== skipped tests ==", left_out.chain(missing))
}

/// Returns a line for each step and their sum. `before` is the cost of this process before the first step.
pub(crate) fn steps(before: Cost, steps: &[EndedStep]) -> String {
    let mut sum = before;
    let mut lines = vec![format!("{}  passed   before the steps", costs(before))];
    for step in steps {
        sum = sum + step.cost;
        let reason = match &step.verdict {
            StepVerdict::Skipped(reason) => format!(": {reason}"),
            _ => String::new(),
        };
        lines.push(format!("{}  {:<7}  {}{reason}", costs(step.cost), step.verdict.word(), step.name));
    }
    lines.push(format!("{}  {:<7}  all", costs(sum), if is_passed(steps) { "passed" } else { "FAILED" }));
    joined(
        "== steps: seconds, and processor seconds of this process and of all for which it waited ==",
        lines,
    )
}

/// Returns the last line: the counts of tests; a failed step without a failed test counts as one.
pub(crate) fn last_line(steps: &[EndedStep]) -> String {
    let mut sum = TestCounts::default();
    for step in steps {
        sum += step.counts;
        let is_counted = step.counts.failed > 0;
        sum.failed += usize::from(step.verdict == StepVerdict::Failed && !is_counted);
    }
    sum.to_string()
}

/// Returns true if no step failed.
pub(crate) fn is_passed(steps: &[EndedStep]) -> bool {
    steps.iter().all(|step| step.verdict != StepVerdict::Failed)
}

fn costs(cost: Cost) -> String {
    format!("{:>8.1} s {:>8.1} cpu-s", cost.wall_seconds, cost.processor_seconds)
}

fn joined(title: &str, lines: impl IntoIterator<Item = String>) -> String {
    std::iter::once(title.to_owned()).chain(lines).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
