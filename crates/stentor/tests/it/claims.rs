//! The claims of published studies, as shown by the command.

use crate::process::{run, run_json};
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;

const STUDIES: [&str; 5] = ["albertengo-2020", "anacleto-2012", "cai-2009", "isikligil-2017", "nunes-2014"];

fn told(arguments: &[&str]) -> Value {
    let (code, report) = run_json(arguments);
    assert_eq!(code, 0, "{report}");
    report
}

#[test]
fn every_claim_of_five_studies_gets_a_verdict_and_the_tables_say_what_was_recorded() {
    let verdicts = ["holds", "does_not_hold", "undecided", "not_testable"];
    for study in STUDIES {
        let report = told(&["lab", "claims", study, "--published-only"]);
        let claims = report["claims"].as_array().unwrap();
        assert!(claims.len() >= 9, "{study}");
        for claim in claims {
            assert!(verdicts.contains(&claim["verdict_published"].as_str().unwrap()), "{claim}");
            assert_eq!(claim["verdict_published"], claim["verdict_recorded"], "{claim}");
            assert_eq!(claim["verdict_ours"], "not_run");
        }
    }
}

#[test]
fn people_read_the_contradictions_first() {
    let output = run(&["lab", "claims", "nunes-2014", "--published-only"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} is not in {text}"));
    assert!(place("Contradicted") < place("C003-9"));
    assert!(place("14.98 < 13.26 (server time, 950MHz, 100Kb)") < place("C003-1 "));
    assert!(place("C003-1 ") < place("client time: message 96.6 %, cpu 2.3 %, subject 0.0 %"));
}

#[test]
fn a_record_of_ours_is_judged_beside_the_papers_tables() {
    let directory = tempfile::tempdir().unwrap();
    let header = "source,experiment,subject,factors,metric,value,low,high,unit,kind";
    let row = |protocol: &str, items: u32, interval: &str| {
        format!(
            "ours,query latency (Zend),{protocol},type=Object;items={items},latency,{interval},s,measured"
        )
    };
    let of_size = |items| {
        [("SOAP", "1.0,0.9,1.1"), ("REST", "1.2,1.1,1.3"), ("XML-RPC", "3.0,2.9,3.1")]
            .map(|(protocol, interval)| row(protocol, items, interval))
    };
    let rows: Vec<String> = [200, 400, 800, 1600, 3200].into_iter().flat_map(of_size).collect();
    let file = directory.path().join("figures.csv");
    std::fs::write(&file, format!("{header}\n{}\n", rows.join("\n"))).unwrap();
    let report = told(&["lab", "claims", "cai-2009", "--record", directory.path().to_str().unwrap()]);
    let field = |id: &str, name: &str| {
        let claim = report["claims"].as_array().unwrap().iter().find(|claim| claim["id"] == id);
        claim.unwrap()[name].clone()
    };
    let verdict = |id: &str| field(id, "verdict_ours").as_str().unwrap().to_owned();
    // Only objects were measured, and there were no interviews.
    let verdicts = ["C004-3", "C004-1", "C004-6", "C004-14"].map(&verdict);
    assert_eq!(verdicts, ["holds", "not_testable", "not_testable", "not_testable"]);
    // Figures without rounds have no ratio over them, and no power.
    assert_eq!(field("C004-3", "verdict_graded"), "5 of 5 cells");
    assert!(field("C004-3", "power").is_null() && field("C004-1", "verdict_graded").is_null());
    std::fs::write(&file, format!("{header}\n{}\n", row("SOAP", 200, "1,2,3"))).unwrap();
    let (code, report) = run_json(&["lab", "claims", "cai-2009", "--record", file.to_str().unwrap()]);
    assert_eq!(code, 2, "{report}");
    assert!(report["error"].as_str().unwrap().contains("line 2 of the figures"), "{report}");
}

#[test]
fn a_run_gets_the_verdicts_of_its_report() {
    for study in ["anacleto-2012", "nunes-2014", "cai-2009", "albertengo-2020"] {
        let run = format!("{}/../../docs/studies/{study}", env!("CARGO_MANIFEST_DIR"));
        if !has_records(&run) {
            continue;
        }
        let verdicts = |object: &serde_json::Value| {
            let claims = object["claims"].as_array().unwrap().clone();
            claims
                .into_iter()
                .map(|claim| (claim["id"].clone(), claim["verdict_ours"].clone()))
                .collect::<Vec<_>>()
        };
        let judged = told(&["lab", "claims", study, "--record", &run]);
        let reported = told(&["lab", "report", &run]);
        assert_eq!(verdicts(&judged), verdicts(&reported), "{study}");
        assert!(
            judged["judged_at"].as_str().unwrap().starts_with("Judged were period software at"),
            "{judged}"
        );
    }
}

#[test]
fn a_result_that_the_experiment_decides_says_so_and_each_setting_has_its_verdict() {
    let run = format!("{}/../../docs/studies/albertengo-2020", env!("CARGO_MANIFEST_DIR"));
    if !has_records(&run) {
        return;
    }
    let report = told(&["lab", "claims", "albertengo-2020", "--record", &run]);
    let claim = |id: &str| {
        let claims = report["claims"].as_array().unwrap();
        claims.iter().find(|claim| claim["id"] == id).unwrap().clone()
    };
    let bytes = claim("C000-4");
    assert_eq!((&bytes["constructed"], &bytes["verdict_ours"]), (&true.into(), &"set_by_experiment".into()));
    assert!(!bytes["needs"].as_str().unwrap().is_empty() && !bytes["quote"].as_str().unwrap().is_empty());
    assert_eq!(claim("C000-6")["constructed"], false);
    let settings = claim("C000-16")["at_settings"].clone();
    let verdicts: Vec<_> =
        settings.as_array().unwrap().iter().map(|one| (&one["setting"], &one["modern"])).collect();
    let expected = [
        (&"connection fresh, hop LAN".into(), &"holds".into()),
        (&"connection kept".into(), &"holds".into()),
        (&"connection kept, hop WAN".into(), &"holds".into()),
    ];
    assert_eq!(verdicts, expected);
}

#[test]
fn the_interviews_of_a_thesis_are_coded_twice() {
    let report = told(&["lab", "claims", "cai-2009", "--published-only"]);
    let agreement = &report["agreement"];
    assert_eq!(agreement["statements"], 106);
    for kappa in ["kappa_topic", "kappa_polarity"] {
        assert!((0.5..1.0).contains(&agreement[kappa].as_f64().unwrap()), "{agreement}");
    }
    assert!(told(&["lab", "claims", "nunes-2014", "--published-only"])["agreement"].is_null());
}

/// Logs that the records are missing, outside the captured output, or fails if `STENTOR_TEST_REQUIRE` lists `records`.
fn has_records(run: &str) -> bool {
    if stentor_lab::record::file_of(Path::new(run)).is_some() {
        return true;
    }
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    let why = format!("{run} has no records: run `cargo xtask records`");
    let is_required = required.split(',').any(|word| word.trim() == "records");
    assert!(!is_required, "{why} (STENTOR_TEST_REQUIRE does not allow to skip it)");
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
    false
}
