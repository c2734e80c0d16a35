//! Cleanup of a fork: files of an earlier attempt, and all times if the processor is emulated.

use super::ForkAttempt;
use crate::record::ForkRecord;
use crate::subject::protocol::SubjectRole;

impl ForkAttempt<'_> {
    /// Removes the files of both halves.
    pub(super) fn clear(&self) {
        for role in [SubjectRole::Client, SubjectRole::Server] {
            for kind in ["", ".db", ".inserted", ".pcap"] {
                let _ = std::fs::remove_file(self.path(role, kind));
            }
        }
    }

    /// If the processor is emulated, removes all times from a record, and the files that contain times.
    pub(super) fn forget_times(&self, record: &mut ForkRecord) {
        if record.is_emulated() {
            record.forget_times();
            self.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{PlanChoice, StudyPlan};
    use crate::runner::{RAW, Settings, roster};

    #[test]
    fn samples_go_with_the_times_where_the_processor_is_emulated_and_stay_where_it_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let plan = StudyPlan::shipped("cai-2009").expect("readable").expect("there");
        let cells =
            plan.expand(&PlanChoice::default(), &roster::ours(&["stentor".to_owned()])).expect("sense").cells;
        let settings = Settings { study: "cai-2009".into(), ..Settings::default() };
        let trial =
            ForkAttempt { cell: &cells[0], fork: 1, attempt: 1, settings: &settings, raw: directory.path() };
        std::fs::create_dir(directory.path().join(RAW)).expect("made");
        let samples = trial.path(SubjectRole::Client, "");
        std::fs::write(&samples, "samples").expect("written");
        let mut record = ForkRecord { first_call_ns: Some(7), ..ForkRecord::default() };
        trial.forget_times(&mut record);
        assert!(samples.exists() && record.first_call_ns == Some(7));
        record.env.emulated = "built for aarch64".into();
        trial.forget_times(&mut record);
        assert!(!samples.exists() && record.first_call_ns.is_none());
    }
}
