//! The studies shipped with the laboratory.

use super::*;
use crate::claims::figures::FigureValue;

#[test]
fn the_papers_own_tables_say_today_what_was_recorded_of_them() {
    for dossier in everything() {
        for one in dossier.judge(None).expect("judged") {
            assert!(one.is_as_recorded(), "{}: {:?}", one.statement.id, one.published);
        }
    }
}

#[test]
fn these_claims_are_contradicted_by_the_papers_that_make_them() {
    let contradicted = |id: &str| {
        let all = judged(id).into_iter().filter(Judged::is_contradicted);
        all.map(|one| one.statement.id).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(contradicted("albertengo-2020"), "C000-9");
    assert_eq!(contradicted("anacleto-2012"), "C001-7b C001-8 C001-9 C001-11 C001-12 C001-16");
    assert_eq!(contradicted("isikligil-2017"), "C002-7 C002-8");
    let nunes =
        "C003-4 C003-9 C003-10 C003-11 C003-12 C003-13 C003-15 C003-17 C003-20 C003-22 C003-23 C003-24";
    assert_eq!(contradicted("nunes-2014"), nunes);
    let cai =
        "C004-1 C004-1b C004-4 C004-5 C004-6b C004-9 C004-10 C004-11 C004-12 C004-13 C004-15 C004-28 C004-29";
    assert_eq!(contradicted("cai-2009"), cai);
}

#[test]
fn a_verdict_follows_the_figures_and_not_the_record() {
    let claims = include_str!("../../../studies/nunes-2014/claims.toml");
    let figures = include_str!("../../../studies/nunes-2014/published.csv");
    let verdict = |figures: &str| {
        let judged = Dossier::read(claims, &[figures]).expect("readable").judge(None).expect("judged");
        let claim = judged.into_iter().find(|one| one.statement.id == "C003-4").expect("there");
        (claim.published.verdict, claim.is_as_recorded())
    };
    assert_eq!(verdict(figures), (ClaimVerdict::DoesNotHold, true));
    let changed = figures.replace(",125.22,", ",124.22,");
    assert_ne!(changed, figures);
    assert_eq!(verdict(&changed), (ClaimVerdict::Holds, false));
}

#[test]
fn a_side_has_the_name_of_what_sets_it_apart() {
    let first = |study: &str, id: &str| {
        let judged = judged(study).into_iter().find(|one| one.statement.id == id).expect("there");
        judged.published.comparisons[0].named.clone()
    };
    for (study, id, expected) in [
        ("albertengo-2020", "C000-15", "REST 100 < SOAP 177"),
        ("albertengo-2020", "C000-16", "GCM 210 > max of REST, SOAP 127"),
        ("albertengo-2020", "C000-23", "FCM ÷ REST 1.0224 ≤ 1.25"),
        ("isikligil-2017", "C002-1", "T9 566 > T1 265"),
    ] {
        assert_eq!(first(study, id), expected, "{id}");
    }
}

#[test]
fn no_comparison_has_a_side_without_a_name() {
    let signs = ["<", ">", "≤", "≥", "=", "≠"];
    for one in STUDIES.iter().flat_map(|study| judged(study)) {
        for relation in one.published.comparisons.iter().map(|one| &one.relation) {
            let sides: Vec<&str> = relation.split(' ').collect();
            let ends = [sides.first(), sides.last()].map(|end| end.copied().unwrap_or_default());
            assert!(ends.iter().all(|end| !end.is_empty() && !signs.contains(end)), "{relation}");
        }
    }
}

#[test]
fn the_evidence_names_the_cell_and_both_sides() {
    let judged = judged("nunes-2014");
    let axis2 = judged.iter().find(|one| one.statement.id == "C003-9").expect("there");
    let failures: Vec<_> =
        axis2.published.failures().map(|one| (one.cell.as_str(), one.named.as_str())).collect();
    let expected = ("experiment=server time; cpu=950MHz; message=100Kb", "Axis2 14.98 < CXF 13.26");
    assert_eq!(failures, [expected]);
    let judged = super::judged("cai-2009");
    let soap = judged.iter().find(|one| one.statement.id == "C004-9").expect("there");
    let failures: Vec<_> = soap.published.failures().map(|one| one.text.as_str()).collect();
    assert_eq!(failures, ["3 (115, 117, 133) == 0"]);
}

#[test]
fn rest_is_fastest_in_ten_of_fifteen_cells() {
    let judged = judged("cai-2009");
    let fastest = judged.iter().find(|one| one.statement.id == "C004-1").expect("there");
    let held = fastest.published.comparisons.iter().filter(|one| one.is_so == Some(true)).count();
    assert_eq!((held, fastest.published.comparisons.len()), (10, 15));
}

#[test]
fn the_framework_explains_a_thousandth_of_what_varies_in_the_study_of_axis2_and_cxf() {
    let analyses = dossier("nunes-2014").analyse().expect("analysed");
    let row = |analysis: &Analysis| {
        let share = |name: &str| {
            let effect = analysis.effects.iter().find(|effect| effect.name == name);
            effect.expect("there").share
        };
        let together: f64 = analysis.effects.iter().filter(|one| one.order > 1).map(|one| one.share).sum();
        let shares = [share("message"), share("cpu"), share("subject"), together];
        (analysis.response.clone(), shares.map(|share| (share * 1000.0).round() / 10.0))
    };
    let rows: Vec<_> = analyses.iter().map(row).collect();
    let expected = [
        ("client time".to_owned(), [96.6, 2.3, 0.0, 1.1]),
        ("server time".to_owned(), [96.0, 2.5, 0.1, 1.3]),
        ("client energy".to_owned(), [97.9, 1.4, 0.0, 0.8]),
        ("server energy".to_owned(), [98.4, 1.0, 0.1, 0.4]),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn what_is_derived_agrees_with_the_rows_that_others_derived() {
    let value = |study: &str, id: &str, cell: &str| {
        let derived = dossier(study).derive().expect("derived");
        derived.into_iter().find(|one| one.id == id && one.cell.contains(cell)).expect("there").value.round()
    };
    assert_eq!(value("albertengo-2020", "overhead-64", "SOAP"), 736.0);
    assert_eq!(value("albertengo-2020", "overhead-4055", "FCM"), 716.0);
    assert_eq!(value("albertengo-2020", "overhead-mean", "REST"), 325.0);
    assert_eq!(value("isikligil-2017", "hold-20", "T9"), 35.0);
    assert_eq!(value("isikligil-2017", "hold-both-200", "T13"), 281.0);
    assert_eq!(value("isikligil-2017", "t4-pushes", "T4"), 738_038.0);
}

#[test]
fn every_claim_of_a_thesis_on_interviews_finds_its_106_statements() {
    let dossier = dossier("cai-2009");
    let ids = |metric: &str| {
        let of_metric = dossier.figures().iter().filter(|figure| figure.metric == metric);
        of_metric.filter_map(|figure| figure.field("id").map(str::to_owned)).collect::<Vec<_>>()
    };
    let statements = ids("polarity");
    let ranges = (100..=133).chain(200..=223).chain(300..=347);
    assert_eq!(statements, ranges.map(|id| id.to_string()).collect::<Vec<_>>());
    let filed = ids("category");
    assert!(filed.iter().all(|id| statements.contains(id)));
    let unfiled: Vec<_> = statements.iter().filter(|id| !filed.contains(id)).collect();
    assert_eq!(unfiled, ["116", "131", "223", "313", "316", "321", "331", "332", "333"]);
}

#[test]
fn every_figure_has_a_source_and_a_kind() {
    let kinds = ["published", "derived", "in figure only", "not measured"];
    for dossier in everything() {
        for figure in dossier.figures().iter() {
            assert!(!figure.source.is_empty() && !figure.metric.is_empty(), "{figure:?}");
            assert!(kinds.contains(&figure.kind.as_str()), "{figure:?}");
            let absent = figure.value == FigureValue::Absent;
            assert_eq!(
                absent,
                ["in figure only", "not measured"].contains(&figure.kind.as_str()),
                "{figure:?}"
            );
        }
    }
}

#[test]
fn ids_are_unique_and_what_cannot_be_tested_says_why() {
    let mut ids = std::collections::BTreeSet::new();
    for one in everything().flat_map(|dossier| dossier.judge(None).expect("judged")) {
        assert!(ids.insert(one.statement.id.clone()), "{} is there twice", one.statement.id);
        let says_why = one.published.missing.as_deref().is_some_and(|why| !why.is_empty());
        assert_eq!(one.published.verdict == ClaimVerdict::NotTestable, says_why, "{}", one.statement.id);
    }
}

#[test]
fn every_claim_carries_the_words_that_it_is_taken_from() {
    for one in everything().flat_map(|dossier| dossier.definition.claims) {
        assert!(one.quote.split_whitespace().count() >= 3, "{}: {:?}", one.id, one.quote);
    }
    let without = include_str!("../../../studies/nunes-2014/claims.toml").replacen("quote = ", "note = ", 1);
    let refused = Dossier::read(&without, &[]).expect_err("a claim without its sentence");
    assert!(refused.to_string().contains("quote"), "{refused}");
}

#[test]
fn a_result_that_a_setting_decides_names_what_a_verdict_would_need() {
    let claims = everything().flat_map(|dossier| dossier.definition.claims);
    let set = claims.filter(|one| !one.constructed.is_empty() || !one.constructed_against.is_empty());
    let ids: Vec<String> =
        set.inspect(|one| assert!(!one.needs.is_empty(), "{}", one.id)).map(|one| one.id).collect();
    for id in ["C000-4", "C000-5", "C000-7", "C000-11", "C002-1", "C002-2", "C002-3", "C002-6"] {
        assert!(ids.iter().any(|one| one == id), "{id}");
    }
}

#[test]
fn no_claim_says_more_than_its_paper() {
    let claims: Vec<Statement> = everything().flat_map(|dossier| dossier.definition.claims).collect();
    let find = |id: &str| claims.iter().find(|one| one.id == id).expect("there");
    let checks = |id: &str| find(id).checks.join(" ");
    // Chains of six systems where the text ranks two or three.
    for id in ["C001-1", "C001-2", "C001-3"] {
        assert!(checks(id).matches('<').count() <= 2, "{id}");
    }
    assert!(!checks("C004-2").contains("max(5"), "the paper names no factor");
    assert!(find("C004-7").measured[0].contains("parsing and formatting"));
    assert_eq!(
        find("C004-8").checks.len(),
        1,
        "one figure of plain PHP is beside the other, not beside Zend's"
    );
    let about_paper: Vec<bool> =
        ["C000-12", "C001-13", "C002-5"].iter().map(|id| find(id).about_paper).collect();
    assert_eq!(about_paper, [true; 3]);
    let implied: Vec<&str> = claims.iter().filter(|one| one.implied).map(|one| one.id.as_str()).collect();
    for id in ["C000-12", "C003-12", "C003-13", "C003-15", "C004-6b"] {
        assert!(implied.contains(&id), "{id}");
    }
}

#[test]
fn measurements_judge_the_same_claims_with_their_intervals() {
    let header = "paper,source,experiment,subject,factors,metric,stat,value,low,high,unit,kind,note";
    let row = |subject: &str, interval: &str| {
        format!(
            "nunes-2014,ours,client time,{subject},cpu=CPU;message=SIZE,total time,median,{interval},s,measured,"
        )
    };
    let cells = |axis2: &str, cxf: &str, cpu: &str, size: &str| {
        [row("Axis2", axis2), row("CXF", cxf)]
            .map(|row| row.replace("CPU", cpu).replace("SIZE", size))
            .join("\n")
    };
    let verdict = |large: [&str; 2]| {
        let rows = [
            cells("1.0,0.9,1.1", "2.0,1.9,2.1", "700MHz", "100Kb"),
            cells("1.0,0.9,1.1", "2.0,1.9,2.1", "950MHz", "100Kb"),
            cells("9.0,8.9,9.1", "8.0,7.9,8.1", "700MHz", "500Kb"),
            cells(large[0], large[1], "950MHz", "500Kb"),
        ];
        let measured = Figures::parse(&format!("{header}\n{}\n", rows.join("\n"))).expect("readable");
        let judged = dossier("nunes-2014").judge(Some(&measured)).expect("judged");
        let of = |id: &str| {
            let one = judged.iter().find(|one| one.statement.id == id).expect("there");
            one.ours.as_ref().expect("measured").verdict
        };
        (of("C003-4"), of("C003-3"))
    };
    // No figure of ours concerns the server, so that its claim stays open.
    assert_eq!(verdict(["9.0,8.9,9.1", "8.0,7.9,8.1"]), (ClaimVerdict::Holds, ClaimVerdict::NotTestable));
    assert_eq!(verdict(["8.2,8.0,9.1", "8.0,7.9,8.1"]), (ClaimVerdict::Undecided, ClaimVerdict::NotTestable));
    assert_eq!(
        verdict(["7.0,6.9,7.1", "8.0,7.9,8.1"]),
        (ClaimVerdict::DoesNotHold, ClaimVerdict::NotTestable)
    );
}

#[test]
fn measurements_say_nothing_about_what_nobody_looked_for_and_about_the_papers_own_numbers() {
    let nothing = Figures::default();
    for dossier in everything() {
        for one in dossier.judge(Some(&nothing)).expect("judged") {
            let ours = one.ours.expect("judged");
            assert_eq!(ours.verdict, ClaimVerdict::NotTestable, "{}", one.statement.id);
        }
    }
}
