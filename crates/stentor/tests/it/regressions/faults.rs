//! Faults below the server: the phases of the kill suite, one by one.

use crate::process::run_json;
use serde_json::{Value, json};
use std::io::Write;
use tempfile::TempDir;

/// Runs one phase at a small size; `None`, with a note, if the fault cannot be injected.
fn phase(name: &str) -> Option<Value> {
    let directory = TempDir::new().unwrap();
    let out = directory.path().join("kill.json");
    let run = ["lab", "kill", "--devices", "2000", "--only", name, "--out", out.to_str().unwrap()];
    let (code, report) = run_json(&run);
    if let Some(skipped) = report["skipped"].as_array().and_then(|skipped| skipped.first()) {
        let sentence = format!("skipped: {name}: {}", skipped["reason"]);
        let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|word| word == "faults"), "{sentence}");
        assert_eq!((code, &report["ok"]), (1, &json!(false)), "what was skipped is not proven: {report}");
        let _nobody_reads_it = std::io::stderr().write_all(format!("{sentence}\n").as_bytes());
        return None;
    }
    assert_eq!((code, &report["ok"]), (0, &json!(true)), "{report:#}");
    assert_eq!(
        (&report["lost"], &report["stuck"], &report["ledger_balanced"]),
        (&json!(0), &json!(0), &json!(true))
    );
    assert_eq!(report["phases"][0]["troubles"], json!(2), "{report:#}");
    Some(report["phases"][0]["inquiry"].clone())
}

fn refusals(inquiry: &Value) -> u64 {
    inquiry["refused"]["unavailable"].as_u64().unwrap_or(0)
}

#[test]
fn r2_a_full_disk_is_said_with_503_and_loses_nothing() {
    if let Some(inquiry) = phase("disk-full") {
        assert!(refusals(&inquiry) > 0 && inquiry["kept"].as_u64() > Some(0), "{inquiry}");
    }
}

#[test]
fn r2_a_disk_that_cannot_sync_is_said_with_503_and_loses_nothing() {
    if let Some(inquiry) = phase("fsync-error") {
        assert!(refusals(&inquiry) > 0 && inquiry["lies"] == json!(0), "{inquiry}");
    }
}

#[test]
fn r2_a_clock_that_jumps_an_hour_and_back_loses_nothing_and_refuses_nothing() {
    if let Some(inquiry) = phase("clock-jump") {
        assert!(refusals(&inquiry) == 0 && inquiry["kept"].as_u64() > Some(0), "{inquiry}");
    }
}
