//! The report of an import.

use std::borrow::Cow;

use super::batch::Parsed;
use crate::contract::import::{ImportResult, LineError};
use crate::service::devices::DeviceCounts;
use crate::service::{ErrorCode, Problem};

/// Most errors in a report; all are counted.
pub const ERRORS_MAX_COUNT: usize = 1_000;

/// The reason why a line was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportProblem {
    /// Line number in the body, from 1.
    pub line: u64,
    /// The kind of the error.
    pub code: ErrorCode,
    /// The invalid field.
    pub field: Option<String>,
    /// A description of the error.
    pub detail: String,
    /// A hint for correcting it.
    pub hint: Option<String>,
}

impl ImportProblem {
    /// Creates the problem of a line.
    #[must_use]
    pub fn new(line: u64, problem: Problem) -> Self {
        let (detail, hint) = (problem.detail.into_owned(), problem.hint.map(Cow::into_owned));
        Self { line, code: problem.code, field: problem.field, detail, hint }
    }
}

/// The result of an import; created + updated + failed = lines, unless it was a dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Lines that should contain a device (blank lines and the CSV header do not).
    pub lines: u64,
    /// Lines without errors.
    pub valid: u64,
    /// New devices.
    pub created: u64,
    /// Devices that were already known.
    pub updated: u64,
    /// Known devices that moved from their former token to another one.
    pub renewed: u64,
    /// Known devices that became one with the device of their former token.
    pub merged: u64,
    /// Invalid lines.
    pub failed: u64,
    /// True if nothing was stored on purpose.
    pub dry_run: bool,
    /// The first [`ERRORS_MAX_COUNT`] refusals.
    pub errors: Vec<ImportProblem>,
    /// True if there were more.
    pub errors_truncated: bool,
}

impl ImportReport {
    /// Counts a parsed batch, before it is stored.
    pub(super) fn take(&mut self, batch: &Parsed) {
        self.lines += batch.line_count();
        self.valid += batch.registrations.len() as u64;
        batch.problems.iter().for_each(|problem| self.refuse(problem.clone()));
    }

    /// Counts new and known devices.
    pub(super) const fn count(&mut self, counts: DeviceCounts) {
        self.created += counts.created;
        self.updated += counts.updated;
        self.renewed += counts.renewed;
        self.merged += counts.merged;
    }

    /// Refuses a line that was counted as valid.
    pub(super) fn refuse_valid(&mut self, problem: ImportProblem) {
        // It was counted when it was parsed.
        self.valid -= 1;
        self.refuse(problem);
    }

    pub(super) fn refuse(&mut self, problem: ImportProblem) {
        self.failed += 1;
        if self.errors.len() < ERRORS_MAX_COUNT {
            self.errors.push(problem);
        } else {
            self.errors_truncated = true;
        }
    }
}

impl From<ImportReport> for ImportResult {
    fn from(report: ImportReport) -> Self {
        let errors = report.errors.into_iter().map(|error| LineError {
            line: error.line,
            code: error.code.as_str(),
            field: error.field,
            detail: error.detail,
            hint: error.hint,
        });
        Self {
            lines: report.lines,
            valid: report.valid,
            created: report.created,
            updated: report.updated,
            renewed: report.renewed,
            merged: report.merged,
            failed: report.failed,
            dry_run: report.dry_run,
            errors: errors.collect(),
            errors_truncated: report.errors_truncated,
        }
    }
}
