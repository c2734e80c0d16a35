//! A study at a tiny size, in which every test is proven, kept and bounded; and a campaign under fire.

use crate::process::run_json;
use serde_json::{Value, json};

/// So few answers are sometimes faster than the mean that the bound is made from.
const SLACK: f64 = 1.25;

#[test]
fn the_thirteen_tests_of_a_study_lose_nothing_and_stay_within_their_bound() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("study");
    let run = ["lab", "run", "isikligil-2017", "--scale", "0.0003", "--out", out.to_str().unwrap()];
    let (code, told) = run_json(&run);
    assert_eq!((code, &told["ok"]), (0, &json!(true)), "{told}");
    let scenarios = told["scenarios"].as_array().unwrap();
    let ids: Vec<String> = (1..=13).map(|number| format!("T{number}")).collect();
    let told_ids: Vec<_> = scenarios.iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(told_ids, ids);
    scenarios.iter().for_each(assert_sound);
    let claims = told["claims"].as_array().unwrap();
    assert!(
        claims.iter().all(|claim| claim["published"].is_string() && claim["ours"].is_string()),
        "{claims:?}"
    );
    let kept = ["report.html", "rates.svg", "scenarios.ndjson", "samples.csv", "provenance.json"];
    let sizes: Vec<u64> = kept.iter().map(|name| out.join(name).metadata().unwrap().len()).collect();
    assert!(sizes.iter().all(|size| *size > 500), "{sizes:?}");
    let entries = out.read_dir().unwrap().count();
    assert_eq!(entries, kept.len(), "nothing of the processes is left over");
}

fn assert_sound(scenario: &Value) {
    assert_eq!((&scenario["lost"], &scenario["pushes"]), (&json!(0), &json!(300)), "{scenario}");
    assert_eq!(scenario["known_devices_reached"][0], scenario["known_devices_reached"][1], "{scenario}");
    let number = |field: &str| scenario[field].as_f64().unwrap_or_else(|| panic!("{field}: {scenario}"));
    assert!(["wall_seconds", "published_pushes_per_second", "ratio"].iter().all(|field| number(field) > 0.0));
    let providers = if scenario["mix"] == "gcm+apns" { 2.0 } else { 1.0 };
    // More requests in flight than consumers would show in both.
    assert!(number("inflight_max") <= number("consumers") * providers, "{scenario}");
    assert!(number("pushes_per_second") <= SLACK * number("bound_pushes_per_second"), "{scenario}");
}

#[test]
fn a_test_without_pools_opens_a_connection_for_each_push() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("study");
    let out = out.to_str().unwrap();
    let run = ["lab", "run", "isikligil-2017", "--scale", "0.0001", "--only", "T1,T9", "--out", out];
    let (code, told) = run_json(&run);
    assert_eq!(code, 0, "{told}");
    let opened = |at: usize| told["scenarios"][at]["connections_opened"].as_u64().unwrap();
    assert!(opened(0) >= 100, "T1 opened {} connections for 100 pushes", opened(0));
    assert!(opened(1) <= 25, "T9 opened {} connections for 20 consumers", opened(1));
}

#[test]
fn a_study_does_not_touch_a_directory_in_use_and_names_its_tests() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("mine"), "").unwrap();
    let out = directory.path().to_str().unwrap();
    let (code, told) = run_json(&["lab", "run", "isikligil-2017", "--out", out]);
    assert!(code == 2 && told["error"].as_str().unwrap().contains("not empty"), "{told}");
    let (code, told) = run_json(&["lab", "run", "isikligil-2017", "--only", "T14", "--out", out]);
    assert!(code == 2 && told["error"].as_str().unwrap().contains("no test T14"), "{told}");
}

#[test]
fn nothing_is_lost_when_all_are_killed_and_the_emulators_stop_answering() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("kill.json");
    let (code, told) =
        run_json(&["lab", "kill", "--devices", "4000", "--kills", "1", "--out", out.to_str().unwrap()]);
    assert_eq!((code, &told["ok"]), (0, &json!(true)), "{told}");
    assert!(["lost", "stuck", "unmarked_duplicates"].iter().all(|field| told[field] == json!(0)), "{told}");
    assert!(["kills", "emulator_kills", "stalls"].iter().all(|field| told[field] == json!(1)), "{told}");
    assert_eq!(told["ledger_balanced"], json!(true));
    // What was not made is said, with the reason.
    let skipped = told["skipped"].as_array().unwrap();
    assert!(!skipped.is_empty() && skipped.iter().all(|one| one["reason"].is_string()), "{told}");
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(out).unwrap()).unwrap();
    assert_eq!(kept, told);
}
