//! What a rule reports: a place and a sentence that tells the fix.

use std::fmt;

/// One broken rule at one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TidyFinding {
    /// The file, relative to the workspace root.
    pub(crate) file: String,
    /// The line, counted from one.
    pub(crate) line: usize,
    /// What is wrong and how to mend it, in one sentence.
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
