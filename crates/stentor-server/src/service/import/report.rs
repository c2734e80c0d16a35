//! What an import came to.

use std::borrow::Cow;

use super::batch::Parsed;
use crate::contract::import::{ImportResult, LineError};
use crate::service::devices::DeviceCounts;
use crate::service::{ErrorCode, Problem};

/// Most errors that a report lists; all are counted.
pub const ERRORS_MAX_COUNT: usize = 1_000;

/// Why a line was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportProblem {
    /// Line of the body, from 1.
    pub line: u64,
    /// What kind.
    pub code: ErrorCode,
    /// Which field.
    pub field: Option<String>,
    /// Why the line was refused.
    pub detail: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl ImportProblem {
    /// Refuses a line.
    #[must_use]
    pub fn new(line: u64, problem: Problem) -> Self {
        let (detail, hint) = (problem.detail.into_owned(), problem.hint.map(Cow::into_owned));
        Self { line, code: problem.code, field: problem.field, detail, hint }
    }
}

/// What an import came to; created + updated + failed = lines, unless it was a dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Lines that should hold a device (blank lines and the CSV header do not).
    pub lines: u64,
    /// Lines without fault.
    pub valid: u64,
    /// Devices made known.
    pub created: u64,
    /// Devices known before.
    pub updated: u64,
    /// Lines refused.
    pub failed: u64,
    /// Whether nothing was kept on purpose.
    pub dry_run: bool,
    /// The first [`ERRORS_MAX_COUNT`] refusals.
    pub errors: Vec<ImportProblem>,
    /// Whether there were more.
    pub errors_truncated: bool,
}

impl ImportReport {
    /// Counts what was read, before anything of it is kept.
    pub(super) fn take(&mut self, batch: &Parsed) {
        self.lines += batch.line_count();
        self.valid += batch.registrations.len() as u64;
        batch.problems.iter().for_each(|problem| self.refuse(problem.clone()));
    }

    /// Counts what was kept: devices made, and devices known before.
    pub(super) const fn count(&mut self, counts: DeviceCounts) {
        self.created += counts.created;
        self.updated += counts.updated;
    }

    /// Refuses a line that seemed to be without fault.
    pub(super) fn refuse_valid(&mut self, problem: ImportProblem) {
        // It was counted as valid when it was read.
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
            failed: report.failed,
            dry_run: report.dry_run,
            errors: errors.collect(),
            errors_truncated: report.errors_truncated,
        }
    }
}
