use super::super::{Remarks, markdown, page};
use super::ClaimVerdict::{DoesNotHold, Holds, NotTestable, SetByExperiment};
use super::*;
use crate::record::{CampaignRecord, FINISHED, NOT_MADE, SCHEMA};
use serde_json::json;

fn record(id: &str, fork: u32, rate: f64) -> ForkRecord {
    let plan = crate::plan::StudyPlan::shipped("isikligil-2017").expect("readable").expect("there");
    let cells = plan.campaigns.expect("campaigns").cells;
    let cell = cells.iter().find(|cell| cell.id == id).expect("a cell");
    ForkRecord {
        campaign: Some(CampaignRecord {
            pushes: 1000,
            pushes_per_second: rate,
            latency_mean_ms: 40.0,
            inflight_mean: Some(19.5),
            ledger_balanced: true,
            known_devices_reached: [1, 1],
            ..CampaignRecord::default()
        }),
        schema: SCHEMA.into(),
        study: "isikligil-2017".into(),
        variant: "paper".into(),
        experiment: id.into(),
        cell: cell.levels(),
        subject: crate::record::Subject { label: "prototype".into(), ..Default::default() },
        fork,
        attempt: 1,
        valid: true,
        outcome: FINISHED.into(),
        ..ForkRecord::default()
    }
}

fn late(id: &str, fork: u32, rate: f64) -> ForkRecord {
    ForkRecord { valid: false, invalid_reason: "the machine was <late>".into(), ..record(id, fork, rate) }
}

fn account(records: Vec<ForkRecord>) -> Account {
    let provenance = json!({"scale": 0.01, "repetitions": 3});
    let command = "stentor lab run <study>".to_owned();
    let remarks =
        Remarks { provenance, command, differences: vec!["GCM is gone".into()], ..Remarks::default() };
    Account::of(Results::of(records).expect("one study"), remarks).expect("told")
}

fn only(records: &[ForkRecord]) -> CellSummary {
    let (mut tests, _) = Results::of(records.to_vec()).expect("one study").measured();
    assert_eq!(tests.len(), 1);
    tests.remove(0)
}

#[test]
fn what_follows_from_a_rate_follows_from_it() {
    let one = only(&[record("T9", 1, 400.0)]);
    // The paper's rate is 566; 20 slots of 40 ms each allow 500.
    assert_eq!((one.published_pushes_per_second, one.bound_pushes_per_second), (Some(566.0), Some(500.0)));
    assert_eq!((one.share_of_bound, one.held_ms), (Some(0.8), Some(50.0)));
    assert_eq!((one.runs, one.rate.expect("a run").low, one.limited_by.is_some()), (1, None, true));
}

#[test]
fn a_claim_on_what_the_paper_left_open_is_judged_by_the_runs_beyond_it() {
    let rates = [
        ("machine", "1-core", 40_000.0),
        ("machine", "a-quarter-of-a-core", 8_000.0),
        ("pools", "1-connection", 2_600.0),
        ("pools", "100-connections", 2_600.0),
    ];
    let runs = |(question, id, rate): (&'static str, &'static str, f64)| {
        (1..=3).map(move |fork| {
            let rate = rate * (1.0 + 0.01 * f64::from(fork));
            ForkRecord { variant: question.into(), ..record(id, fork, rate) }
        })
    };
    let answers = account(rates.into_iter().flat_map(runs).collect()).answers().expect("judged");
    let of = |id| answers.iter().find(|one| one.id == id).expect("a claim").ours;
    assert_eq!((of("C002-11"), of("C002-12")), (SetByExperiment, Holds));
}

#[test]
fn a_run_in_which_anything_is_amiss_is_not_sound() {
    let sound = record("T9", 1, 1.0).campaign.expect("a campaign");
    assert!(sound.is_sound());
    for spoil in [
        (|one: &mut CampaignRecord| one.lost = 1) as fn(&mut CampaignRecord),
        |one| one.stuck = 1,
        |one| one.duplicates = 1,
        |one| one.ledger_balanced = false,
        |one| one.known_devices_reached = [0, 1],
    ] {
        let mut one = sound.clone();
        spoil(&mut one);
        assert!(!one.is_sound(), "{one:?}");
    }
}

#[test]
fn a_run_that_does_not_count_is_in_no_figure_and_stays_visible() {
    let mut spoilt = late("T9", 2, 9.0);
    spoilt.campaign.as_mut().expect("a campaign").lost = 1;
    let records = vec![record("T9", 1, 400.0), spoilt, record("T9", 3, 410.0)];
    let one = only(&records);
    assert_eq!((one.runs, one.runs_invalid, one.campaign.pushes_per_second), (2, 1, 405.0));
    assert_eq!((one.rates.values(), one.campaign.lost), (&[400.0, 410.0][..], 1), "what was lost stays lost");
    let account = account(records);
    let uncounted = account.results.uncounted_runs();
    assert_eq!((uncounted.len(), uncounted[0].repetition), (1, 2));
    let page = page(&account);
    assert!(page.contains("the machine was &lt;late&gt;") && page.contains("2 of 3"));
}

#[test]
fn a_cell_of_which_no_run_counts_has_no_rate_and_says_why() {
    let skipped = ForkRecord {
        outcome: NOT_MADE.into(),
        valid: false,
        invalid_reason: "no rights".into(),
        ..record("half-a-core", 1, 0.0)
    };
    let ended = ForkRecord { outcome: "the server was killed".into(), ..record("32-MiB", 1, 0.0) };
    let results = Results::of(vec![late("T1", 1, 100.0), skipped, ended]).expect("one study");
    let (tests, beyond) = results.measured();
    assert_eq!((tests[0].rate, tests[0].runs, tests[0].runs_invalid), (None, 0, 1));
    assert_eq!(
        (beyond[0].skipped.as_str(), beyond[1].ended.as_str()),
        ("no rights", "the server was killed")
    );
    let page = page(&Account::of(results, Remarks::default()).expect("told"));
    assert!(page.contains("not run here") && page.contains("the server ended"));
}

#[test]
fn claims_are_judged_by_rates_and_those_of_tests_that_were_not_run_are_not_testable() {
    let three =
        |id: &'static str, rate: f64| (1..=3).map(move |fork| record(id, fork, rate + f64::from(fork)));
    let few = account(three("T9", 500.0).collect()).answers().expect("judged");
    let of = |answers: &[JudgedClaim], id: &str| {
        answers.iter().find(|one| one.id == id).map(|one| (one.published, one.ours)).expect("there")
    };
    assert_eq!(of(&few, "pools"), (Holds, NotTestable));
    let pairs = [("T9", 500.0), ("T1", 400.0), ("T10", 500.0), ("T2", 400.0), ("T11", 900.0), ("T3", 1200.0)];
    let mut records: Vec<ForkRecord> = pairs.into_iter().flat_map(|(id, rate)| three(id, rate)).collect();
    records.extend(three("slow-producer-20", 150.0).chain(three("slow-producer-100", 160.0)));
    let answers = account(records).answers().expect("judged");
    assert_eq!(of(&answers, "pools"), (Holds, SetByExperiment));
    let pools = answers.iter().find(|one| one.id == "pools").expect("there");
    assert!(
        pools.our_figures.contains("(not so)"),
        "both platforms are the other way: {}",
        pools.our_figures
    );
    assert_eq!(of(&answers, "first-rate"), (DoesNotHold, NotTestable));
    assert_eq!(of(&answers, "consumers-do-not-raise"), (NotTestable, Holds));
}

#[test]
fn the_page_needs_nothing_else_and_both_forms_have_the_same_tables() {
    let account = account(vec![record("T9", 1, 400.0), record("gcm-20", 1, 300.0)]);
    let page = page(&account);
    for part in
        ["<svg", "400.0", "Differences from the paper", "stentor lab run &lt;study&gt;", "Beyond the paper"]
    {
        assert!(page.contains(part), "{part} is not there");
    }
    for part in ["<script", "<link", "<img", "src=", "<study>", "url(", "@import"] {
        assert!(!page.contains(part), "{part} is there");
    }
    let text = markdown(&account);
    assert!(text.contains("## Verdicts") && text.contains("| T9 | gcm | 20 | yes | 1 |"), "{text}");
    assert!(
        text.contains("## Beyond the paper: Is it the consumers") && text.contains("| scale | 0.01 |"),
        "{text}"
    );
}
