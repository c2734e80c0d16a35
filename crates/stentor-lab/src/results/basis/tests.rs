use super::super::tests::{finding, record};
use super::super::{Account, Remarks, Results, figures_csv, markdown, page, sheet};
use super::*;
use crate::claims::ClaimVerdict::{self, NotTestable};
use crate::statistics::invented::Invented;
use std::collections::BTreeMap;

/// A small nunes-2014: in every phase Axis2 takes 1.5 times as long as CXF; the given phases of the given subjects overlap.
fn study(overlaps: &[(&str, &[&str])]) -> Results {
    let mut invented = Invented::new(3);
    let mut records = Vec::new();
    for fork in 1..=4 {
        for (subject, ms) in [("Axis2", 30.0), ("CXF", 20.0)] {
            for (cpu, message) in
                [("700MHz", "100Kb"), ("700MHz", "500Kb"), ("950MHz", "100Kb"), ("950MHz", "500Kb")]
            {
                let mut one = record(subject, "Int", "200", fork, ms, &mut invented);
                one.study = "nunes-2014".into();
                one.experiment = "sort".into();
                one.cell = BTreeMap::from([("cpu".into(), cpu.into()), ("message".into(), message.into())]);
                for phase in [phase::SERVER_DESER, phase::SERVER_WORK, phase::SERVER_SER] {
                    let like = one.latency[phase::CLIENT_DESER].clone();
                    one.latency.insert(phase.into(), like);
                }
                let own = overlaps.iter().filter(|(label, _)| *label == subject);
                one.overlaps =
                    Some(own.flat_map(|(_, phases)| *phases).map(|one| (*one).to_owned()).collect());
                records.push(one);
            }
        }
    }
    Results::of(records).expect("one study")
}

fn found(results: &Results, id: &str) -> (ClaimVerdict, String) {
    let one = finding(results, id);
    (one.period.verdict, one.period.why)
}

const DESERIALIZES: &str = "C003-2";
const SERVER_IN_ALL: &str = "C003-3";
const CLIENT_IN_ALL: &str = "C003-4";
const SERVICE_MOST: &str = "C003-7";

#[test]
fn phases_that_stand_alone_are_compared() {
    let results = study(&[]);
    for id in [DESERIALIZES, SERVER_IN_ALL, CLIENT_IN_ALL, SERVICE_MOST] {
        assert_ne!(found(&results, id).0, NotTestable, "{id}");
    }
}

#[test]
fn a_claim_about_a_phase_that_one_subject_streams_is_not_testable_and_says_who_streams() {
    let results = study(&[("CXF", &[phase::SERVER_DESER, phase::SERVICE])]);
    let (verdict, why) = found(&results, DESERIALIZES);
    assert_eq!(verdict, NotTestable);
    let wanted = "the phases cannot be separated because the subject streams: server_deser of CXF/php";
    assert_eq!(why, wanted);
    assert_eq!(found(&results, SERVICE_MOST).0, NotTestable, "the share is of what holds the way");
}

#[test]
fn sums_are_compared_where_they_hold_the_same() {
    let phases: &[&str] = &[phase::SERVER_DESER, phase::SERVICE];
    let (one, both) = (study(&[("CXF", phases)]), study(&[("CXF", phases), ("Axis2", phases)]));
    let (verdict, why) = found(&one, SERVER_IN_ALL);
    assert_eq!(verdict, NotTestable);
    assert!(
        why.contains("time of a server alone; time of a server with concurrent receiving and sending"),
        "{why}"
    );
    assert_ne!(found(&both, SERVER_IN_ALL).0, NotTestable);
    let client = study(&[("CXF", &[phase::CLIENT_SER, phase::REQUEST, phase::NET])]);
    assert_ne!(found(&client, CLIENT_IN_ALL).0, NotTestable, "the round trip holds all of it");
}

#[test]
fn figures_say_in_their_file_what_they_may_be_compared_with() {
    let csv = figures_csv(&study(&[("CXF", &[phase::CLIENT_DESER])]), 0.95);
    let line = |subject: &str| {
        let parts = [format!(",{subject},"), "deserialization share".to_owned(), "client time".to_owned()];
        let found = csv.lines().find(|line| parts.iter().all(|part| line.contains(part)));
        found.expect("there").to_owned()
    };
    assert!(line("CXF").contains(",overlapping,the phases cannot be separated"), "{}", line("CXF"));
    assert!(line("Axis2").contains(",measured,4 forks"), "{}", line("Axis2"));
    let read = crate::claims::figures::Figures::parse(&csv).expect("readable");
    let objections = read.iter().filter_map(Figure::objection).count();
    assert_eq!(objections, 4, "one for each cell of CXF");
}

#[test]
fn memory_is_compared_on_one_runtime_with_one_collector_only() {
    let on = |versions: &[(&str, &str)]| {
        let mut one = record("SOCKET", "Int", "200", 1, 1.0, &mut Invented::new(1));
        let named = versions.iter().map(|(name, version)| ((*name).to_owned(), (*version).to_owned()));
        one.subject.versions = named.collect();
        let results = Results::of(vec![one]).expect("one study");
        runtime(&results.cells[0])
    };
    assert_eq!(on(&[("client.java", "17"), ("client.collector", "serial")]), "the JVM (serial collector)");
    assert_eq!(on(&[("client.java", "17")]), "the JVM");
    assert_eq!(on(&[("client.python", "3.11"), ("server.java", "17")]), "Python");
    assert_eq!(on(&[("client.stentor/rust", "0.1.0")]), "native code");
}

#[test]
fn every_table_picture_and_file_marks_the_phases_that_run_together() {
    let overlaps: [(&str, &[&str]); 1] = [("CXF", &[phase::CLIENT_DESER, phase::TRANSFER])];
    let renderings = |overlaps: &[(&str, &[&str])]| {
        let csv = sheet(&study(overlaps));
        let account = Account::of(study(overlaps), Remarks::default()).expect("judged");
        let picture = account.plots.iter().find(|plot| plot.id == "phases").expect("drawn");
        (csv, markdown(&account), page(&account), format!("{} {}", picture.words, picture.svg))
    };
    let (csv, text, html, picture) = renderings(&overlaps);
    let blurred: Vec<&str> =
        csv.lines().filter(|line| line.ends_with(",overlaps: a half streams,")).collect();
    assert_eq!(blurred.len(), 2 * 4 * 5, "two phases of four cells, and of their four forks");
    assert!(blurred.iter().all(|line| line.contains(",CXF,")), "{blurred:?}");
    for document in [&text, &html, &picture] {
        assert!(document.contains(MARK) && document.contains("A half streams"), "{document}");
    }
    let (csv, text, html, picture) = renderings(&[]);
    assert!(!csv.contains("streams"));
    for document in [&text, &html, &picture] {
        assert!(!document.contains(MARK) && !document.contains("A half streams"), "{document}");
    }
}
