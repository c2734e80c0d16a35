//! Failures: one sentence with the next step for the user, and an exit code that scripts can rely on.

use std::fmt;

/// The kinds of failure, one exit code each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Refused or failed.
    NotDone = 1,
    /// Not understood.
    ResourceUsage = 2,
    /// The server does not answer.
    Unreachable = 3,
    /// The key does not open this.
    Denied = 4,
    /// The requested thing does not exist.
    NotFound = 5,
    /// The machine cannot do it.
    NotTestable = 6,
    /// Stopped by the user.
    Interrupted = 130,
}

/// An error with its exit code, and with the server's error code if there is one.
#[derive(Debug)]
pub struct CommandFailure {
    /// The kind, which is the exit code.
    pub exit: Exit,
    /// The server's stable code.
    pub code: Option<String>,
    sentence: String,
}

impl CommandFailure {
    /// Creates a failure from a sentence.
    pub fn new(exit: Exit, sentence: impl Into<String>) -> Self {
        Self { exit, code: None, sentence: sentence.into() }
    }

    /// Creates a failure caused by wrong usage of the command line.
    pub fn usage(sentence: impl Into<String>) -> Self {
        Self::new(Exit::ResourceUsage, sentence)
    }

    /// Creates a failure of the operation itself.
    pub fn not_done(sentence: impl Into<String>) -> Self {
        Self::new(Exit::NotDone, sentence)
    }

    /// Adds the server's code.
    pub fn with_code(mut self, code: Option<String>) -> Self {
        self.code = code;
        self
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for CommandFailure {}

/// Returns the exit code and the server's code of any error.
pub fn judge(error: &anyhow::Error) -> (Exit, Option<&str>) {
    match error.downcast_ref::<CommandFailure>() {
        Some(failure) => (failure.exit, failure.code.as_deref()),
        None => (Exit::NotDone, None),
    }
}
