//! The finding of a rule: a place, and a sentence with the problem and its fix.

use std::fmt;

/// One broken rule at one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TidyFinding {
    /// The file, relative to the workspace root.
    pub(crate) file: String,
    /// The line, counted from one.
    pub(crate) line: usize,
    /// The problem and its fix, in one sentence.
    pub(crate) sentence: String,
}

impl TidyFinding {
    pub(crate) fn new(file: &str, line: usize, sentence: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, sentence: sentence.into() }
    }
}

impl fmt::Display for TidyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.sentence)
    }
}
