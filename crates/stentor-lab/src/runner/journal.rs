//! The directory of a run: the growing record file, raw samples, and the settings that must be equal to resume.

use super::{RunError, Settings};
use crate::record::{ForkRecord, RecordWriter, decompress, read};
use std::path::{Path, PathBuf};

/// The file of settings that must be equal to resume in a directory.
pub const PLAN: &str = "plan.json";
/// The entry of that file that may differ: the requested part of the study, so that more parts can be added.
pub const ASKED: &str = "asked";
/// The entry of that file with the text of a user's own plan.
pub const OWN_PLAN: &str = "own_plan";
/// The directory of raw samples.
pub const RAW: &str = "raw";

/// Writes records.
pub(super) struct Journal {
    writer: RecordWriter,
    directory: PathBuf,
}

impl Journal {
    /// Creates the directory, or resumes in it; returns the existing records.
    pub(super) fn open(settings: &Settings, file: &str) -> Result<(Self, Vec<ForkRecord>), RunError> {
        let out = &settings.out;
        let wrong = |source| RunError::Io { path: out.display().to_string(), source };
        std::fs::create_dir_all(out).map_err(wrong)?;
        let (plan, records) = (out.join(PLAN), out.join(file));
        let recorded = if settings.resume {
            check(&plan, settings)?;
            decompress(&records)?;
            if records.exists() { read(&records)? } else { Vec::new() }
        } else if std::fs::read_dir(out).map_err(wrong)?.next().is_some() {
            return Err(RunError::InUse(out.display().to_string()));
        } else {
            std::fs::write(&plan, settings.plan.to_string()).map_err(wrong)?;
            Vec::new()
        };
        let writer = RecordWriter::append(&records)?;
        let directory = std::path::absolute(out).map_err(wrong)?;
        Ok((Self { writer, directory }, recorded))
    }

    /// Adds the record of an attempt.
    pub(super) fn add(&mut self, record: &ForkRecord) -> Result<(), RunError> {
        Ok(self.writer.write(record)?)
    }

    /// Returns the directory of the run.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }
}

fn check(plan: &Path, settings: &Settings) -> Result<(), RunError> {
    let name = || settings.out.display().to_string();
    let text = std::fs::read_to_string(plan)
        .map_err(|source| RunError::Io { path: plan.display().to_string(), source })?;
    let recorded_plan = serde_json::from_str(&text).unwrap_or_default();
    if fixed(recorded_plan) == fixed(settings.plan.clone()) {
        Ok(())
    } else {
        Err(RunError::OtherSettings(name()))
    }
}

fn fixed(mut plan: serde_json::Value) -> serde_json::Value {
    plan.as_object_mut().and_then(|plan| plan.remove(ASKED));
    plan
}
