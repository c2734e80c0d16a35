//! The error type for invalid input.

use std::fmt;

/// A value that breaks a rule: the field and a hint for its correction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Path of the offending field, as the caller wrote it (`data.google.x`, `notification.title`).
    pub field: String,
    /// The problem and the expected form, as a part of a sentence.
    pub problem: String,
}

impl Invalid {
    /// Creates an error for a field.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }

    /// Puts `parent.` before the field, for errors found inside a nested value.
    #[must_use]
    pub fn within(mut self, parent: &str) -> Self {
        self.field =
            if self.field.is_empty() { parent.to_owned() } else { format!("{parent}.{}", self.field) };
        self
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

impl std::error::Error for Invalid {}
