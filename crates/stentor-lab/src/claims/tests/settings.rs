//! Results that a setting of the experiment decides.

use super::*;

const CLAIMS: &str = r#"
[study]
id = "p"
title = "P"
authors = "A"
year = 2020

[[claims]]
id = "always"
kind = "order"
source = "Sec. 1"
text = "A is faster than B."
quote = "A was faster"
checks = ["time[subject=A] < time[subject=B]"]
constructed = "A and B are one program"
published = "not_testable"

[[claims]]
id = "against"
kind = "order"
source = "Sec. 1"
text = "A is faster than B."
quote = "A was faster"
checks = ["time[subject=A] < time[subject=B]"]
constructed_against = "the way to B is shorter here"
published = "not_testable"
"#;

/// Judges both claims by our times of A and B.
fn judged(a: &str, b: &str) -> [Judgment; 2] {
    let header = "source,experiment,subject,factors,metric,stat,value,low,high,unit,kind,note";
    let rows = format!("{header}\nt,e,A,,time,mean,{a},ms,measured,\nt,e,B,,time,mean,{b},ms,measured,\n");
    let figures = Figures::parse(&rows).expect("readable");
    let all = Dossier::read(CLAIMS, &[&rows]).expect("readable").judge(Some(&figures)).expect("judged");
    let ours: Vec<Judgment> = all.into_iter().filter_map(|one| one.ours).collect();
    ours.try_into().expect("two claims")
}

#[test]
fn a_result_that_a_setting_decides_is_no_verdict_on_the_claim() {
    for (a, b) in [("1,0.9,1.1", "9,8,10"), ("9,8,10", "1,0.9,1.1"), ("1,0.1,10", "2,0.1,10")] {
        let [always, _] = judged(a, b);
        assert_eq!(always.verdict, ClaimVerdict::SetByExperiment, "{a}; {b}");
        assert_eq!(always.missing.as_deref(), Some("A and B are one program"));
        assert_eq!(always.comparisons.len(), 1, "the figures are shown beside the reason");
    }
}

#[test]
fn a_setting_that_explains_a_contradiction_leaves_a_confirmation_as_it_is() {
    assert_eq!(judged("1,0.9,1.1", "9,8,10")[1].verdict, ClaimVerdict::Holds);
    assert_eq!(judged("1,0.1,10", "2,0.1,10")[1].verdict, ClaimVerdict::Undecided);
    let [_, contradicted] = judged("9,8,10", "1,0.9,1.1");
    assert_eq!(contradicted.verdict, ClaimVerdict::SetByExperiment);
    assert_eq!(contradicted.missing.as_deref(), Some("the way to B is shorter here"));
}

#[test]
fn what_was_not_measured_is_not_set_by_the_experiment() {
    let claims = Dossier::read(CLAIMS, &["source,value\n"]).expect("readable").definition.claims;
    for claim in claims {
        let ours = claim.judge_measured(&Figures::default()).expect("judged");
        assert_eq!(ours.verdict, ClaimVerdict::NotTestable, "{}", claim.id);
    }
}

#[test]
fn numbers_that_no_run_varied_are_deterministic() {
    assert!(judged("1,1,1", "9,9,9")[1].is_deterministic());
    assert!(!judged("1,0.9,1.1", "9,9,9")[1].is_deterministic());
}
