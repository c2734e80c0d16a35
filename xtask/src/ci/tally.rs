//! Counts and times of tests, read from the output of a test program.

/// Numbers of tests by their end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TestCounts {
    /// They ran and held.
    pub(crate) passed: usize,
    /// They ran and did not hold, or their program ended before they did.
    pub(crate) failed: usize,
    /// They did not run: only `--full` runs them, or something that they need is missing here.
    pub(crate) skipped: usize,
}

impl std::ops::AddAssign for TestCounts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl std::fmt::Display for TestCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// One test with its duration.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TestTime {
    /// Its path within its program.
    pub(crate) test: String,
    /// Seconds from its begin to its end, in which other tests ran too.
    pub(crate) seconds: f64,
}

/// Follows the output of one test program, line by line.
#[derive(Debug, Default)]
pub(crate) struct HarnessLog {
    /// Tests that ended, in the order of their ends.
    pub(crate) times: Vec<TestTime>,
    /// The reasons of tests that stopped, because something is missing here.
    pub(crate) reasons: Vec<String>,
    /// Passed and failed, by the line with which a harness ends.
    result: Option<(usize, usize)>,
    /// Lines that said that a test passed.
    passed_lines: usize,
}

/// Prefix of the output of a test that stops because something is missing.
const SKIPPED: &str = "skipped: ";

impl HarnessLog {
    /// Takes the next line, without its end.
    pub(crate) fn note(&mut self, line: &str) {
        if let Some((passed, failed)) = result(line) {
            self.result = Some((passed, failed));
        } else if let Some((_, reason)) = line.split_once(SKIPPED).filter(|(before, _)| is_own(before)) {
            self.reasons.push(reason.to_owned());
        }
        if let Some((test, verdict, seconds)) = ended(line) {
            self.times.push(TestTime { test: test.to_owned(), seconds });
            self.passed_lines += usize::from(verdict == "ok");
        }
    }

    /// Returns the counts of a program that was to run `wanted` tests. Tests without a verdict, because the program ended early, have
    /// failed.
    pub(crate) fn counts(&self, wanted: usize) -> TestCounts {
        let (passed, failed) =
            self.result.unwrap_or((self.passed_lines, wanted - self.passed_lines.min(wanted)));
        let skipped = self.reasons.len().min(passed);
        TestCounts { passed: passed - skipped, failed, skipped }
    }
}

/// Returns true if a result line begins as the harness writes it: a test may print at the same time.
fn is_own(before: &str) -> bool {
    before.is_empty() || before.starts_with("test ")
}

/// Reads `test result: ok. 3 passed; 0 failed; …`.
fn result(line: &str) -> Option<(usize, usize)> {
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let count = |word: &str| {
        let mut parts = counts.split("; ").filter_map(|part| part.split_once(' '));
        parts.find(|(_, what)| *what == word).and_then(|(number, _)| number.parse().ok())
    };
    Some((count("passed")?, count("failed")?))
}

/// Reads `test a::b ... ok <1.234s>`: the path, the verdict and the seconds.
fn ended(line: &str) -> Option<(&str, &str, f64)> {
    let (test, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let (verdict, time) = rest.split_once(" <")?;
    let test = test.strip_suffix(" - should panic").unwrap_or(test);
    Some((test, verdict, time.strip_suffix("s>")?.parse().ok()?))
}

#[cfg(test)]
mod tests;
