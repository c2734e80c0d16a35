//! Subjects of users, which no slot of a plan lists.

use super::*;
use crate::subject::dialect::DIALECTS;

const BOTH: [SubjectRole; 2] = [SubjectRole::Server, SubjectRole::Client];

/// Defines a subject with every operation, and none of the further abilities.
fn own(dialect: &str) -> Definition {
    foreign(&format!("{dialect}/my-framework-1.0/python3"), &BOTH)
}

fn named(study: &str, wishes: &[&str], own: &Definition) -> ExpandedPlan {
    let subjects = wishes.iter().map(|wish| (*wish).to_owned()).collect();
    let choice = PlanChoice { subjects, ..PlanChoice::default() };
    expand(study, &choice, &[ours(), vec![own.clone()]].concat())
}

#[test]
fn a_subject_of_any_dialect_takes_part_in_every_study_whose_operations_it_has() {
    for study in PLANNED {
        for dialect in DIALECTS {
            let own = own(dialect.name());
            let cells = named(study, &["my-framework"], &own).cells;
            assert!(!cells.is_empty(), "{study} has no place for {}", own.id);
            assert!(cells.iter().all(|cell| cell.client.id == own.id), "{study}: {}", dialect.name());
        }
    }
}

#[test]
fn every_operation_has_a_study_for_a_subject_that_has_no_other() {
    for op in Op::ALL {
        for dialect in DIALECTS {
            let own = Definition { ops: vec![op], ..own(dialect.name()) };
            let has_cells = |study: &&&str| !named(study, &["my-framework"], &own).cells.is_empty();
            assert!(PLANNED.iter().any(|study| has_cells(&study)), "{} {}", op.word(), dialect.name());
        }
    }
}

#[test]
fn an_own_subject_stands_in_the_place_of_its_dialect_or_in_one_with_its_dialects_name() {
    let labels = |study: &str, dialect: &str| -> BTreeSet<(String, String)> {
        let cells = named(study, &["my-framework"], &own(dialect)).cells.into_iter();
        cells.map(|cell| (cell.label, cell.stack)).collect()
    };
    let row = |label: &str| [(label.to_owned(), "my-framework-1.0/python3".to_owned())].into();
    assert_eq!(labels("albertengo-2020", "rest+json"), row("REST"));
    assert_eq!(labels("cai-2009", "rest+xml"), row("REST"));
    assert_eq!(labels("nunes-2014", "rest+xml"), row("REST+XML"), "it is neither Axis2 nor CXF");
    assert_eq!(labels("nunes-2014", "rest+json"), row("rest+json"));
    assert_eq!(labels("anacleto-2012", "xmlrpc"), row("xmlrpc"));
}

#[test]
fn a_subject_of_ours_stands_beside_an_own_one_where_its_whole_id_is_named() {
    let ids = |wishes: &[&str]| -> BTreeSet<String> {
        let cells = named("nunes-2014", wishes, &own("rest+json")).cells.into_iter();
        cells.map(|cell| cell.client.id).collect()
    };
    let (own, ours) = ("rest+json/my-framework-1.0/python3".to_owned(), format!("rest+json/{BUILT_IN}"));
    assert_eq!(ids(&["my-framework", &ours]), [own.clone(), ours].into());
    assert_eq!(ids(&["my-framework", "rest+json"]), [own].into());
}

#[test]
fn an_own_subject_without_fresh_connections_has_no_cells_of_them() {
    let connections = |can: &[&str]| -> BTreeSet<String> {
        let can = can.iter().map(|one| (*one).to_owned()).collect();
        let own = Definition { can, ..own("rest+json") };
        let cells = named("albertengo-2020", &["my-framework"], &own).cells.into_iter();
        cells.filter_map(|cell| cell.levels.get("connection").cloned()).collect()
    };
    assert_eq!(connections(&[]), ["kept".to_owned()].into());
    assert_eq!(connections(&["fresh"]), ["fresh".to_owned(), "kept".to_owned()].into());
}

#[test]
fn an_own_subject_is_not_run_by_settings_that_only_the_papers_software_follows() {
    let own = Definition { can: vec!["fresh".to_owned()], ..own("rest+json") };
    let cells = named("albertengo-2020", &["my-framework"], &own).cells;
    assert!(cells.iter().all(|cell| cell.variant != "code"), "its REST asks by GET");
}

#[test]
fn no_study_runs_an_own_subject_that_nobody_names() {
    for study in PLANNED {
        for profile in [RunProfile::Quick, RunProfile::Standard, RunProfile::Full] {
            let choice = PlanChoice { profile, ..PlanChoice::default() };
            let cells = expand(study, &choice, &[ours(), vec![own("rest+json")]].concat()).cells;
            assert!(cells.iter().all(|cell| cell.client.id.ends_with(BUILT_IN)), "{study}");
        }
    }
}
