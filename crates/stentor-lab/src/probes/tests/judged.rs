//! Results of probes: a file, figures, verdicts, tables.

use super::*;
use crate::claims::ClaimVerdict::{self, DoesNotHold, Holds, NotTestable};
use crate::claims::Dossier;
use crate::results::tests::{finding, study};
use crate::results::{Account, Remarks, Results, markdown};

fn dossier() -> Dossier {
    Dossier::open(STUDY).expect("readable").expect("on the shelf")
}

/// Judges one claim by the result of a single probe.
fn judged(id: &str, one: ProbeResult) -> ClaimVerdict {
    let figures = Probed::of(vec![one]).figures();
    let judged = dossier().judge(Some(&figures)).expect("judged");
    let claim = judged.into_iter().find(|claim| claim.statement.id == id).expect(id);
    claim.ours.expect("judged by ours").verdict
}

#[test]
fn every_cell_of_both_tables_has_a_probe_beside_it() {
    let subjects = PaperProtocol::ALL.map(PaperProtocol::label);
    let of =
        |probe: &FeatureProbe| subjects.map(|subject| told(&probe.id, &probe.feature, subject, Word(Yes)));
    let results: Vec<ProbeResult> = list().iter().flat_map(of).collect();
    let rows = rows(dossier().figures(), &results);
    assert_eq!(rows.len(), 36);
    assert!(rows.iter().all(|row| !row.probes.is_empty()), "{rows:?}");
    assert_eq!(rows.iter().map(|row| row.probes.len()).sum::<usize>(), results.len());
}

#[test]
fn ids_of_probes_are_given_once_and_each_has_a_trial() {
    let probes = list();
    assert!(probes.iter().all(FeatureProbe::has_trial));
    let mut ids: Vec<&str> = probes.iter().map(|probe| probe.id.as_str()).collect();
    let count = ids.len();
    assert_eq!(count, 24);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn the_file_of_a_run_comes_back_and_a_foreign_one_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    assert_eq!(Probed::read(directory.path()).expect("nothing there"), None);
    let answers = [Number(9.0), Word(No), Word(Untestable)];
    let probed = Probed::of(answers.map(|answer| told("types", "Strict typing", "SOAP", answer)).to_vec());
    probed.write(directory.path()).expect("written");
    assert_eq!(Probed::read(directory.path()).expect("read"), Some(probed.clone()));
    // An undecided result gives no figure.
    assert_eq!(probed.figures().iter().count(), 2);
    std::fs::write(directory.path().join(PROBES), "{\"schema\":\"other\",\"study\":\"x\",\"probes\":[]}")
        .expect("written");
    assert!(matches!(Probed::read(directory.path()), Err(ProbedError::Shape { .. })));
}

#[test]
fn claims_about_features_follow_what_the_probe_says() {
    let structs = |word| told("structs", "Structs and arrays", "REST", Word(word));
    assert_eq!(judged("C004-10", structs(Yes)), DoesNotHold);
    assert_eq!(judged("C004-10", structs(No)), Holds);
    assert_eq!(judged("C004-10", structs(NotRun)), NotTestable);
    let contract = |word| told("contract", "Specification", "REST", Word(word));
    // A feature that our face lacks may exist in other software.
    assert_eq!(judged("C004-13", contract(No)), NotTestable);
    assert_eq!(judged("C004-13", contract(Yes)), Holds);
    assert_eq!(judged("C004-12", told("tls", "Security", "REST", Word(Yes))), DoesNotHold);
    assert_eq!(judged("C004-14", structs(Yes)), NotTestable);
}

#[test]
fn neither_a_proxy_nor_a_count_of_statements_decides_a_claim() {
    let count = |id, feature, subject, answer| told(id, feature, subject, Number(answer));
    let upkeep = "Extensibility/Maintainability";
    let learning = "Short learning curve";
    let figures = Probed::of(vec![
        count("lines", upkeep, "SOAP", 8.0),
        count("lines", upkeep, "REST", 6.0),
        count("upkeep-against", upkeep, "SOAP", 3.0),
        count("names", learning, "REST", 1.0),
        count("learning-against", learning, "REST", 2.0),
    ]);
    let judged = dossier().judge(Some(&figures.figures())).expect("judged");
    for id in ["C004-9", "C004-14", "C004-15"] {
        let claim = judged.iter().find(|claim| claim.statement.id == id).expect(id);
        let ours = claim.ours.as_ref().expect("judged by ours");
        assert_eq!(ours.verdict, NotTestable, "{id}");
        assert!(ours.missing.as_ref().is_some_and(|why| !why.contains('[')), "{id}: {ours:?}");
    }
}

#[test]
fn probes_stand_in_the_column_of_today_without_a_p_value() {
    let structs = told("structs", "Structs and arrays", "REST", Word(Yes));
    let results = Results::of(study(3, 3)).expect("one study").with_probed(Some(Probed::of(vec![structs])));
    let probed = finding(&results, "C004-10");
    assert_eq!((probed.period.verdict, probed.modern.verdict), (NotTestable, DoesNotHold));
    assert_eq!((probed.best().verdict, probed.modern.p), (DoesNotHold, None));
    assert!(probed.modern.why.contains("probe"), "{:?}", probed.modern);
    // REST was not probed for a description.
    assert_eq!(finding(&results, "C004-13").best().verdict, NotTestable);
}

#[test]
fn the_server_itself_has_rows_with_what_was_seen_and_decides_no_claim() {
    let ours = told("structs", "Structs and arrays", "REST", Word(Yes));
    let seen = |answer| vec![told("structs", "Structs and arrays", "REST", Word(answer))];
    let account = |server| {
        let probed = Probed::of(vec![ours.clone()]).with_server(server);
        let results = Results::of(study(3, 3)).expect("one study").with_probed(Some(probed));
        Account::of(results, Remarks::default()).expect("an account")
    };
    let verdict = |account: &Account| finding(&account.results, "C004-10").modern.verdict;
    let refused = account(seen(No));
    assert_eq!(verdict(&refused), verdict(&account(Vec::new())));
    let row = "| Structs and arrays (Table 9) | REST, the server itself | NO | structs: **NO** (";
    assert!(markdown(&refused).contains(row), "{}", markdown(&refused));
    for nothing in [Vec::new(), seen(NotProbed)] {
        assert!(!markdown(&account(nothing)).contains("REST, the server itself"), "nothing was seen");
    }
}
