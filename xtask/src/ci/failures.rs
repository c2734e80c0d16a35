//! Failures, found in the output of cargo and libtest.

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

/// A failure, with its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StepFailure {
    /// The target and the test, or another name.
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
            // The list of failed targets: the last target has ended.
            self.end_target();
        } else {
            self.target.note(&line);
        }
    }

    /// Returns the failures of a failed step: at least the last output of the step.
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

/// The output of one test target.
#[derive(Debug, Default)]
struct TargetLog {
    /// Cargo's line at its beginning, and after a failure the arguments that run it again.
    name: String,
    has_failed: bool,
    /// It ended by a signal, or with a code that is not libtest's.
    has_crashed: bool,
    printed: Tail,
    /// The failed tests, in libtest's order.
    failed: Vec<String>,
    outputs: Vec<StepFailure>,
    /// The test of the output that is being read.
    test: Option<(String, Tail)>,
    /// True while the list of names is being read.
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

    /// Returns the failed tests, and the target itself if none failed or it did not end normally.
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

/// Returns true if cargo reports that it runs the next target.
fn begins_target(line: &str) -> bool {
    let words = line.trim_start();
    // Cargo right-aligns its verbs in twelve columns; the output of a test seldom begins like this.
    line.starts_with("   ") && (words.starts_with("Running ") || words.starts_with("Doc-tests "))
}

/// Returns the arguments with which cargo runs a failed target again.
fn rerun(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("error: ")?;
    let rest = rest.strip_prefix("test failed").or_else(|| rest.strip_prefix("doctest failed"))?;
    rest.split('`').nth(1)
}

fn failed_test(line: &str, in_list: bool) -> Option<String> {
    // The verdict may be followed by the time of the test.
    let verdict = line.split_once(" <").map_or(line, |(verdict, _)| verdict);
    let ended = verdict.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"));
    let ended = ended.map(|name| name.strip_suffix(" - should panic").unwrap_or(name));
    // A line of the first kind is broken if another thread prints at the same time; the list is not.
    let listed = line.strip_prefix("    ").filter(|name| in_list && !name.starts_with(' '));
    ended.or(listed).map(str::to_owned)
}

/// Removes the escape codes of colours.
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
