use super::*;

fn study() -> Study {
    Study::isikligil_2017().expect("readable")
}

fn published() -> Published {
    Published::isikligil_2017().expect("readable")
}

#[test]
fn the_study_of_2017_has_thirteen_tests_each_with_a_published_rate() {
    let (study, published) = (study(), published());
    let ids: Vec<_> = study.scenarios.iter().map(|scenario| scenario.id.as_str()).collect();
    assert_eq!(ids, ["T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11", "T12", "T13"]);
    let rates: Vec<_> = ids.iter().filter_map(|id| published.pushes_per_second(id)).collect();
    let table = [265.0, 195.0, 284.0, 98.0, 501.0, 518.0, 460.0, 413.0, 566.0, 558.0, 801.0, 824.0, 712.0];
    assert_eq!(rates, table);
}

#[test]
fn every_test_sends_a_million_pushes_at_full_scale() {
    let study = study();
    assert!(study.scenarios.iter().all(|scenario| study.pushes(scenario, 1.0) == 1_000_000));
    let (one, both) = (study.devices(Mix::Gcm, 1.0), study.devices(Mix::Both, 1.0));
    assert_eq!(one.gcm + one.apns + both.gcm + both.apns, 3_000_000);
}

#[test]
fn a_scale_never_leaves_a_platform_without_devices() {
    assert_eq!(study().devices(Mix::Both, 1e-9), Devices { gcm: 2, apns: 2 });
    assert_eq!(study().devices(Mix::Gcm, 0.002), Devices { gcm: 2000, apns: 2000 });
}

#[test]
fn the_latency_has_the_mean_that_the_paper_allows() {
    let mean = study().provider.mean_ms();
    assert!((mean - 35.0).abs() < 0.1, "{mean}");
}

#[test]
fn both_platforms_have_twice_the_requests_in_flight() {
    let study = study();
    let inflight: Vec<_> = study.scenarios.iter().map(Scenario::inflight_requests).collect();
    assert_eq!(inflight, [20, 20, 40, 50, 50, 50, 100, 100, 20, 20, 40, 100, 200]);
}

#[test]
fn the_papers_own_figures_leave_one_of_its_claims_undecided() {
    let (study, published) = (study(), published());
    let verdicts: Vec<_> = study
        .claims
        .iter()
        .map(|claim| (claim.id.as_str(), claim.judge(|id| published.pushes_per_second(id))))
        .collect();
    // 801 and 824 pushes a second, from one run each.
    let expected = [
        ("pools", Verdict::Holds),
        ("one-platform", Verdict::Holds),
        ("both-platforms", Verdict::Undecided),
        ("both-beat-one", Verdict::Holds),
    ];
    assert_eq!(verdicts, expected);
}

#[test]
fn one_pair_the_other_way_round_is_enough_against_a_claim() {
    let claim = Claim {
        id: "c".into(),
        text: String::new(),
        pairs: vec![["a".into(), "b".into()], ["c".into(), "d".into()]],
    };
    let rates = |c: f64| {
        move |id: &str| {
            Some(if id == "a" {
                2.0
            } else if id == "c" {
                c
            } else {
                1.0
            })
        }
    };
    assert_eq!(claim.judge(rates(1.5)), Verdict::Holds);
    assert_eq!(claim.judge(rates(1.01)), Verdict::Undecided);
    assert_eq!(claim.judge(rates(0.5)), Verdict::DoesNotHold);
    assert_eq!(claim.judge(|id| (id == "a").then_some(1.0)), Verdict::NotTestable);
}

#[test]
fn every_claim_speaks_of_tests_that_exist() {
    let study = study();
    let known = |id: &String| study.scenarios.iter().any(|scenario| scenario.id == *id);
    assert!(study.claims.iter().flat_map(|claim| claim.pairs.iter().flatten()).all(known));
}

#[test]
fn a_figure_that_cannot_be_read_is_named_by_its_line() {
    let error = Published::parse("header\n\na,b\n").expect_err("refused");
    assert_eq!(error.to_string(), "line 3 of the published figures: has too few columns");
}
