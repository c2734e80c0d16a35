//! Subjects and plans of users in studies.

use crate::process::run_json;
use crate::studies::{NO_GATE, run};
use crate::subject::SKELETON;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use stentor_lab::record;

#[test]
fn the_skeleton_of_a_subject_ends_in_the_studies_that_have_its_operations() {
    let part = ["--subjects", SKELETON, "--subject", "my-framework"];
    for (study, label) in
        [("albertengo-2020", "REST"), ("nunes-2014", "rest+json"), ("cai-2009", "rest+json")]
    {
        let dry = ["lab", "run", study, "--dry-run", "--out", "unused"];
        let (code, report) = run_json(&[&dry[..], &part].concat());
        let cells = report["cells"].as_array().unwrap();
        let is_its_own =
            |cell: &Value| cell.as_str().unwrap().contains(&format!("{label} (my-framework-1.0/python3)"));
        assert!(code == 0 && !cells.is_empty() && cells.iter().all(is_its_own), "{study}: {report}");
    }
    let out = tempfile::tempdir().unwrap();
    let beside = ["--subject", "REST", "--variant", "paper", "--factor", "payload=64 B"];
    let (code, report) = run("albertengo-2020", out.path(), &[&part[..], &beside].concat());
    assert_eq!((code, &report["ok"]), (0, &json!(true)), "{report}");
    let records = record::read_directory(out.path()).unwrap();
    let stacks: BTreeSet<&str> = records.iter().map(|one| one.subject.stack.as_str()).collect();
    assert_eq!(stacks, BTreeSet::from(["my-framework-1.0/python3", "rust"]));
}

#[test]
fn a_subject_that_is_named_and_lacks_a_program_is_refused_with_what_is_missing() {
    let subjects = tempfile::tempdir().unwrap();
    let text = "id = 'rest+json/mine/x'\nops = ['sort']\nroles = ['server']\nneeds = ['python>=99.1']\nrun = ['x']\n";
    std::fs::write(subjects.path().join("mine.toml"), text).unwrap();
    let place = subjects.path().to_str().unwrap();
    let wish = ["--subjects", place, "--subject", "rest+json/mine", "--dry-run", "--out", "unused"];
    let (code, report) = run_json(&[&["lab", "run", "nunes-2014"], &wish[..]].concat());
    let sentence = report["error"].as_str().unwrap();
    assert!(code == 2 && sentence.contains("rest+json/mine/x cannot run: missing: python"), "{report}");
}

#[test]
fn an_own_plan_runs_and_its_report_has_its_remarks_and_no_verdicts() {
    let directory = tempfile::tempdir().unwrap();
    let (out, page) = (directory.path().join("out"), directory.path().join("page.md"));
    let (out, page) = (out.to_str().unwrap(), page.to_str().unwrap());
    let plan = format!("{SKELETON}/plan.toml");
    let small = ["lab", "run", "--plan", &plan, "--subjects", SKELETON, "--subject", "my-framework,rust"];
    let amount = ["--forks", "2", "--samples", "3", "--out", out];
    let (code, report) = run_json(&[&small[..], &amount, &NO_GATE].concat());
    assert_eq!(
        (code, &report["study"], &report["cells"]),
        (0, &json!("echo-of-two-sizes"), &json!(4)),
        "{report}"
    );
    let (code, report) = run_json(&["lab", "report", out, "--md", page]);
    assert_eq!((code, &report["claims"]), (0, &json!([])), "{report}");
    let text = std::fs::read_to_string(page).unwrap();
    for words in
        ["# echo-of-two-sizes", "languages are compared", "lab run --plan echo-of-two-sizes.toml --quick"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let (code, report) = run_json(&["lab", "run", "--plan", "none.toml", "--out", out]);
    assert!(code == 2 && report["error"].as_str().unwrap().contains("none.toml cannot be read"), "{report}");
}
