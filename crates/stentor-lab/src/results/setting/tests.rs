use std::collections::BTreeSet;

use super::super::evidence::chosen;
use super::super::paper;
use super::super::tests::{finding, record};
use super::super::verdicts;
use super::*;
use crate::claims::ClaimVerdict;
use crate::record::ForkRecord;
use crate::record::tests::kept;
use crate::statistics::invented::Invented;

const SUBJECTS: [&str; 6] =
    ["HTTP XML DOM", "HTTP XML Pull", "HTTP JSON", "SOCKET", "HTTP XML SAX", "HTTP PROBUF"];
/// The client of SAX has no factor `heap`.
const WITHOUT_HEAP: &str = "HTTP XML SAX";
const HEAPS: [&str; 4] = ["16 MB", "24 MB", "8 MB", "free"];

/// A fork of a synchronisation of 1884 points.
fn synchronisation(subject: &str, heap: &str, fork: u32, outcome: &str) -> ForkRecord {
    let mut record = record(subject, "Int", "200", fork, 5.0 + f64::from(fork), &mut Invented::new(9));
    "anacleto-2012".clone_into(&mut record.study);
    "poi sync".clone_into(&mut record.experiment);
    record.cell = [("poi", "1884"), ("heap", heap)].map(|(name, level)| (name.into(), level.into())).into();
    outcome.clone_into(&mut record.outcome);
    record
}

/// A study in its real shape: four heaps for each subject, except the one without a heap.
fn study(at_16: &str, elsewhere: &str) -> Results {
    let mut records = Vec::new();
    for subject in SUBJECTS {
        for heap in HEAPS.into_iter().filter(|heap| subject != WITHOUT_HEAP || *heap == "free") {
            let is_small = !["HTTP XML SAX", "HTTP PROBUF"].contains(&subject);
            let outcome = if heap == "16 MB" { at_16 } else { elsewhere };
            let outcome = if is_small { outcome } else { "finished" };
            records.extend((1..=3).map(|fork| synchronisation(subject, heap, fork, outcome)));
        }
    }
    Results::of(records).expect("one study")
}

#[test]
fn who_runs_out_of_memory_and_who_does_not_is_judged_at_the_papers_heap() {
    let verdict = |at_16: &str, elsewhere: &str| {
        finding(&study(at_16, elsewhere), "C001-4").period.judgment.expect("judged").verdict
    };
    assert_eq!(verdict("Out of Memory", "finished"), ClaimVerdict::Holds);
    assert_eq!(verdict("finished", "Out of Memory"), ClaimVerdict::DoesNotHold);
}

#[test]
fn the_setting_that_was_judged_at_is_said_with_those_that_are_elsewhere() {
    let verdicts = verdicts(&study("finished", "finished")).expect("judged").expect("a study with claims");
    assert_eq!(
        verdicts.judged_at(),
        "Judged were period software at heap 16 MB (free for HTTP XML SAX, which ran with no other), link lan."
    );
}

#[test]
fn a_client_without_a_factor_of_the_setting_is_judged_at_those_that_it_has() {
    let of_push = |delay: &str, tls: &str| {
        let mut record = record("GCM", "Int", "200", 1, 5.0, &mut Invented::new(9));
        "albertengo-2020".clone_into(&mut record.study);
        "RTT".clone_into(&mut record.experiment);
        let levels = [("payload", "64 B"), ("provider_delay", delay), ("push_tls", tls)];
        record.cell = levels.map(|(name, level)| (name.into(), level.into())).into();
        record
    };
    let records =
        [of_push("0 ms", "on"), of_push("paper", "on"), of_push("0 ms", "off"), of_push("paper", "off")];
    let results = Results::of(records.into()).expect("one study");
    let judged: Vec<(&str, &str)> = results
        .cells
        .iter()
        .filter(|cell| is_papers(&results, cell) || is_elsewhere(&results, cell, &results.setting))
        .map(|cell| (cell.levels["provider_delay"].as_str(), cell.levels["push_tls"].as_str()))
        .collect();
    assert_eq!(judged, [("0 ms", "on")]);
}

#[test]
fn times_of_the_paper_stand_beside_cells_of_its_setting_alone() {
    let results = study("finished", "finished");
    let beside: BTreeSet<(&str, &str)> = results
        .cells
        .iter()
        .filter(|cell| paper::published_ms(&results, cell).is_some())
        .map(|cell| (cell.subject.as_str(), cell.levels["heap"].as_str()))
        .collect();
    // All other subjects of the paper ran out of memory.
    assert_eq!(beside, [("HTTP PROBUF", "16 MB"), ("HTTP XML SAX", "free")].into());
}

#[test]
fn a_client_that_ran_at_other_levels_alone_is_judged_once_and_has_no_time_of_the_paper_beside_it() {
    let heaps = ["8 MB", "24 MB"].into_iter();
    let records = heaps.map(|heap| synchronisation("HTTP PROBUF", heap, 1, "finished")).collect();
    let results = Results::of(records).expect("one study");
    assert_eq!(chosen(&results, true).len(), 1);
    assert!(results.cells.iter().all(|cell| paper::published_ms(&results, cell).is_none()));
}

#[test]
fn committed_records_are_judged_where_their_papers_stood() {
    let levels = |records: &[ForkRecord], factor: &str| -> BTreeSet<String> {
        let results = Results::of(records.to_vec()).expect("one study");
        let cells = chosen(&results, true).into_iter().filter(|cell| cell.subject != WITHOUT_HEAP);
        cells.filter_map(|cell| cell.levels.get(factor).cloned()).collect()
    };
    let (Some(anacleto), Some(albertengo)) = (kept("anacleto-2012"), kept("albertengo-2020")) else { return };
    assert_eq!(levels(&anacleto, "heap"), ["16 MB UTF-16".to_owned()].into());
    assert_eq!(levels(&anacleto, "cpu"), ["10 % interpreted".to_owned()].into());
    assert_eq!(levels(&albertengo, "connection"), ["fresh".to_owned()].into());
    assert_eq!(levels(&albertengo, "tls"), ["off".to_owned()].into());
}

#[test]
fn every_study_names_levels_that_its_plan_has() {
    for study in crate::plan::PLANNED {
        let plan = crate::plan::StudyPlan::shipped(study).expect("readable").expect("planned");
        let factors = || plan.experiments.iter().flat_map(|experiment| &experiment.factors);
        for (factor, levels) in &plan.setting {
            let has = |wanted: &String| {
                let mut all = factors().filter(|one| one.name == *factor).flat_map(|one| &one.levels);
                all.any(|level| level.level == *wanted)
            };
            assert!(!levels.is_empty() && levels.iter().all(has), "{study}: {factor}");
        }
    }
}
