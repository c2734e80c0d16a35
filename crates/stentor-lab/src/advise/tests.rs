use super::*;

use crate::record::tests::kept;
use crate::results::Results;
use crate::results::tests::study;

fn wish(payload_bytes: u64, per_second: f64, link: &str) -> AdviceRequest {
    AdviceRequest {
        payload_bytes,
        per_second,
        link: LinkPreset::named(link).expect("a link"),
        correctness: Importance::Some,
        openness: Importance::Some,
        energy: Importance::Some,
    }
}

fn best(wish: &AdviceRequest) -> &'static str {
    advise(wish, &[]).expect("judged")[0].choice
}

fn find<'a>(all: &'a [Recommendation], choice: &str) -> &'a Recommendation {
    all.iter().find(|one| one.choice == choice).expect(choice)
}

#[test]
fn large_content_over_a_slow_link_goes_in_few_bytes() {
    assert_eq!(best(&wish(300_000, 0.01, "2g")), "rest+protobuf");
}

#[test]
fn an_open_service_for_small_messages_speaks_json() {
    let open = AdviceRequest { openness: Importance::High, ..wish(256, 1.0, "wifi") };
    assert_eq!(best(&open), "rest+json");
}

#[test]
fn correctness_raises_soap_and_nothing_else_does_so_much() {
    let place = |correctness| {
        let all =
            advise(&AdviceRequest { correctness, openness: Importance::None, ..wish(2000, 1.0, "lan") }, &[])
                .expect("judged");
        all.iter().position(|one| one.choice == "soap").expect("there")
    };
    assert!(
        place(Importance::High) < place(Importance::None),
        "{} {}",
        place(Importance::High),
        place(Importance::None)
    );
}

#[test]
fn xmlrpc_is_last_of_all_that_is_asked_for_where_its_study_saw_it_break_down() {
    let all = advise(&wish(100_000, 1.0, "4g"), &[]).expect("judged");
    let asked = all.iter().rev().find(|one| !one.is_push());
    assert_eq!(asked.expect("choices").choice, "xmlrpc");
    assert!(find(&all, "xmlrpc").body_bytes > 3 * find(&all, "rest+protobuf").body_bytes);
}

#[test]
fn what_does_not_fit_the_link_is_said_and_loses() {
    let all = advise(&wish(20_000, 2.0, "2g"), &[]).expect("judged");
    let heavy = find(&all, "xmlrpc");
    assert!(
        heavy.link_share > 1.0 && heavy.reasons.iter().any(|reason| reason.text.starts_with("does not fit"))
    );
}

#[test]
fn a_claim_that_its_own_paper_contradicts_counts_nothing() {
    let all = advise(&wish(1000, 1.0, "wifi"), &[]).expect("judged");
    let fastest = find(&all, "rest+json")
        .reasons
        .iter()
        .find(|reason| reason.claim.as_deref() == Some("cai-2009 C004-1"));
    let fastest = fastest.expect("cited");
    assert_eq!(
        (fastest.points, fastest.published, fastest.ours),
        (0.0, Some(ClaimVerdict::DoesNotHold), None)
    );
}

#[test]
fn records_outweigh_the_papers_figures_and_are_cited() {
    let mut records = study(6, 3);
    records.iter_mut().for_each(|record| {
        record.subject.client =
            if record.subject.label == "REST" { "rest+json/php" } else { "soap/php" }.into();
    });
    let results = Results::of(records).expect("one study");
    let evidence = StudyEvidence::of(&results, "results").expect("judged");
    let all = advise(&wish(1000, 1.0, "wifi"), &[evidence]).expect("judged");
    let json = find(&all, "rest+json");
    let fastest =
        json.reasons.iter().find(|reason| reason.claim.as_deref() == Some("cai-2009 C004-1")).expect("cited");
    assert_eq!((fastest.ours, fastest.points), (Some(ClaimVerdict::Holds), 1.0));
    assert!(json.measured.len() == 1 && json.measured[0].timed.forks == 6, "{:?}", json.measured);
    assert!(find(&all, "xmlrpc").measured.is_empty());
}

#[test]
fn every_rule_rests_on_a_claim_that_exists() {
    let rules = rules().expect("readable");
    let known = known(&rules, &[]).expect("judged");
    let mut cited = rules.iter().filter_map(|rule| rule.claim.as_ref());
    assert!(cited.clone().count() > 10 && cited.all(|claim| known.contains_key(claim)));
    assert!(rules.iter().flat_map(|rule| &rule.choices).all(|one| CHOICES.contains(&one.as_str())));
}

#[test]
fn no_size_or_rate_panics() {
    for (payload, rate) in [(0, 0.0), (1, 1e12), (u64::MAX, 1e-9)] {
        let all = advise(&wish(payload, rate, "lan"), &[]).expect("judged");
        assert!(all.iter().all(|one| one.points.is_finite()), "{payload} {rate}");
    }
}

/// The measurements cited for a choice without records of one's own.
fn cited(wish: &AdviceRequest, choice: &str) -> Vec<Measured> {
    let all = advise(wish, &StudyEvidence::committed()).expect("judged");
    find(&all, choice).measured.clone()
}

#[test]
fn the_figures_that_advice_cites_are_those_of_the_committed_runs() {
    let mut found = Vec::new();
    for study in crate::plan::PLANNED {
        let Some(records) = kept(study) else { return };
        let results = Results::of(records).expect("one study");
        found.push(StudyEvidence::of(&results, &format!("{FOLDER}/{study}")).expect("judged"));
    }
    assert!(
        write(&found).expect("lines") == write(&StudyEvidence::committed()).expect("lines"),
        "records have changed: cargo run -p stentor-lab --example committed-figures"
    );
}

#[test]
fn push_is_ranked_and_its_services_pay_for_their_way_and_their_small_messages() {
    let small = advise(&wish(600, 2.0, "wifi"), &StudyEvidence::committed()).expect("judged");
    let delays = ["gcm", "fcm", "gateway"].map(|choice| find(&small, choice).service_ms);
    assert_eq!(delays, [276.0, 317.0, 0.0], "the way of the paper's services to a device");
    for choice in ["gcm", "fcm", "gateway"] {
        let one = find(&small, choice);
        assert!(one.body_bytes > 600 && one.body_bytes < 800, "{choice}: {}", one.body_bytes);
        let first = one.measured.first().unwrap_or_else(|| panic!("{choice} was measured"));
        let has_delay = first.timed.levels["provider_delay"] == "paper";
        assert!(first.source.study == "albertengo-2020" && has_delay == (choice != "gateway"), "{first:?}");
    }
    let place =
        |all: &[Recommendation], choice| all.iter().position(|one| one.choice == choice).expect("ranked");
    assert!(place(&small, "gateway") < place(&small, "fcm"));
    let large = advise(&wish(100_000, 0.01, "wifi"), &[]).expect("judged");
    let takes = |choice: &str| {
        find(&large, choice).reasons.iter().any(|reason| reason.text.contains("takes 25 messages"))
    };
    assert!(takes("gcm") && takes("fcm") && !takes("gateway"));
}

#[test]
fn every_choice_cites_a_measurement_that_bears_on_it_without_any_records_given() {
    for (payload, link) in [(600, "wifi"), (600, "4g"), (20_000, "lan"), (300_000, "3g")] {
        for one in advise(&wish(payload, 2.0, link), &StudyEvidence::committed()).expect("judged") {
            let first = one.measured.first().unwrap_or_else(|| panic!("{} at {payload}", one.choice));
            assert!(!first.source.date.is_empty() && first.timed.forks >= 2, "{first:?}");
            for cited in &one.measured {
                let levels = &cited.timed.levels;
                assert!(
                    ["interruption", "page", "reply"].iter().all(|factor| !levels.contains_key(*factor)),
                    "{cited:?}"
                );
                assert!(!cited.timed.part.contains("code"), "{cited:?}");
            }
        }
    }
}

#[test]
fn the_nearest_size_is_cited_on_the_link_that_is_asked_for() {
    let wish = wish(600, 2.0, "wifi");
    for choice in ["rest+json", "rest+protobuf", "soap", "socket+protobuf"] {
        let first = &cited(&wish, choice)[0].timed;
        assert!(first.link == "wifi" && first.median_ms < 50.0, "{choice}: {first:?}");
        let plain = PLAIN.iter().all(|(factor, free)| {
            *factor == "tls" || first.levels.get(*factor).is_none_or(|level| level == free)
        });
        assert!(first.is_ours && plain, "{choice}: {first:?}");
    }
    let bytes = |payload| cited(&self::wish(payload, 2.0, "wifi"), "rest+json")[0].timed.body_bytes;
    assert!(bytes(100) < bytes(2000) && bytes(2000) < bytes(200_000));
}

#[test]
fn a_claim_of_four_is_cited_for_the_two_of_it_that_were_measured() {
    let all = advise(&wish(600, 2.0, "wifi"), &StudyEvidence::committed()).expect("judged");
    let reasons = &find(&all, "rest+json").reasons;
    for claim in ["albertengo-2020 C000-2", "albertengo-2020 C000-4"] {
        let reason = reasons.iter().find(|reason| reason.claim.as_deref() == Some(claim)).expect(claim);
        assert!(reason.ours.is_some() && reason.part.is_some(), "{reason:?}");
    }
}
