//! What failed, found in what cargo and libtest print.

use std::collections::VecDeque;

/// Last lines that are kept of a step, of a target and of a test.
const KEPT_MAX_LINES: usize = 400;

/// The last lines of an output.
#[derive(Debug, Default)]
struct Tail(VecDeque<String>);

impl Tail {
    fn push(&mut self, line: &str) {
        if self.0.len() == KEPT_MAX_LINES {
            self.0.pop_front();
        }
        self.0.push_back(line.to_owned());
    }

    fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.0).into()
    }
}

/// What failed, and what it printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StepFailure {
    /// The target and the test, or whatever else names it.
    pub(crate) name: String,
    /// Its own output.
    pub(crate) lines: Vec<String>,
}

/// Follows the output of a cargo command, line by line.
#[derive(Debug, Default)]
pub(crate) struct FailureLog {
    step: Tail,
    target: TargetLog,
    found: Vec<StepFailure>,
}

impl FailureLog {
    /// Takes the next line, without its end.
    pub(crate) fn note(&mut self, line: &str) {
        let line = without_colours(line);
        self.step.push(&line);
        if self.target.test.is_none() && begins_target(&line) {
            self.end_target();
            self.target.name = line.trim().to_owned();
        } else if line.starts_with("error: ") && line.contains(" failed:") {
            // The list of the targets that failed: the last of them has ended.
            self.end_target();
        } else {
            self.target.note(&line);
        }
    }

    /// Returns what failed in a step that failed: at least what the step printed last.
    pub(crate) fn failures(mut self, step: &str) -> Vec<StepFailure> {
        self.end_target();
        if self.found.is_empty() {
            self.found.push(StepFailure { name: step.to_owned(), lines: self.step.take() });
        }
        self.found
    }

    fn end_target(&mut self) {
        self.found.extend(std::mem::take(&mut self.target).failures());
    }
}

/// What one test target printed.
#[derive(Debug, Default)]
struct TargetLog {
    /// What cargo said of it when it began, and after a failure how it is run again.
    name: String,
    has_failed: bool,
    /// It ended by a signal, or with a code that is not libtest's.
    has_crashed: bool,
    printed: Tail,
    /// The tests that failed, in libtest's order.
    failed: Vec<String>,
    outputs: Vec<StepFailure>,
    /// The test whose output comes now.
    test: Option<(String, Tail)>,
    /// The list of names comes now.
    in_list: bool,
}

impl TargetLog {
    fn note(&mut self, line: &str) {
        self.printed.push(line);
        if let Some(rerun) = rerun(line) {
            (self.name, self.has_failed) = (rerun.to_owned(), true);
        } else if let Some(name) =
            line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            self.end_test();
            self.test = Some((name.to_owned(), Tail::default()));
        } else if line == "failures:" {
            self.end_test();
            self.in_list = true;
        } else if line.starts_with("test result: ") {
            self.end_test();
            self.in_list = false;
        } else if let Some((_, printed)) = &mut self.test {
            printed.push(line);
        } else {
            self.has_crashed |= line.contains("process didn't exit successfully");
            self.failed.extend(failed_test(line, self.in_list).filter(|name| !self.failed.contains(name)));
        }
    }

    fn end_test(&mut self) {
        if let Some((name, mut printed)) = self.test.take() {
            self.outputs.push(StepFailure { name, lines: printed.take() });
        }
    }

    /// Returns the tests that failed, and the target itself when none did or it did not come to its end.
    fn failures(mut self) -> Vec<StepFailure> {
        self.end_test();
        if !self.has_failed {
            return Vec::new();
        }
        let of_test = |test: &String| {
            let printed = self.outputs.iter().find(|output| output.name == *test);
            let lines = printed.map(|output| output.lines.clone()).unwrap_or_default();
            StepFailure { name: format!("{}: {test}", self.name), lines }
        };
        let mut failures: Vec<StepFailure> = self.failed.iter().map(of_test).collect();
        if failures.is_empty() || self.has_crashed {
            failures.push(StepFailure { name: self.name, lines: self.printed.take() });
        }
        failures
    }
}

/// Whether cargo says that it runs the next target.
fn begins_target(line: &str) -> bool {
    let words = line.trim_start();
    // Cargo puts its verbs to the right of twelve columns; what a test prints seldom begins there.
    line.starts_with("   ") && (words.starts_with("Running ") || words.starts_with("Doc-tests "))
}

/// Returns the arguments by which cargo runs a target again that failed.
fn rerun(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("error: ")?;
    let rest = rest.strip_prefix("test failed").or_else(|| rest.strip_prefix("doctest failed"))?;
    rest.split('`').nth(1)
}

fn failed_test(line: &str, in_list: bool) -> Option<String> {
    // Behind the verdict may come how long the test took.
    let verdict = line.split_once(" <").map_or(line, |(verdict, _)| verdict);
    let ended = verdict.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"));
    let ended = ended.map(|name| name.strip_suffix(" - should panic").unwrap_or(name));
    // A line of the first kind is broken when something else prints at the same moment; the list is not.
    let listed = line.strip_prefix("    ").filter(|name| in_list && !name.starts_with(' '));
    ended.or(listed).map(str::to_owned)
}

/// Leaves out what turns colours on and off.
fn without_colours(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_code = |letter: char| matches!(letter, '[' | ';' | '0'..='9');
        let rest = part.trim_start_matches(is_code);
        plain.push_str(rest.get(1..).unwrap_or_default());
    }
    plain
}

#[cfg(test)]
mod tests;
