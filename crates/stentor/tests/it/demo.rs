//! The demo at small sizes: the proof holds, even if the server and the emulators are killed.

use crate::process::run_json;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;

fn assert_proven(report: &Value, code: i32, devices: u64) {
    assert_eq!((code, &report["ok"]), (0, &json!(true)), "{report}");
    let none = ["lost", "stuck", "disagreeing", "unmarked_duplicates"];
    assert!(none.iter().all(|field| report[field] == json!(0)), "{report}");
    assert_eq!(report["ledger_balanced"], json!(true));
    let count = |field: &str| report[field].as_u64().unwrap();
    assert_eq!(count("accepted") + count("rejected"), devices, "{report}");
    let emulators = report["emulators"].as_object().unwrap();
    let counted =
        |field: &str| emulators.values().map(|emulator| emulator[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!(counted("tokens_accepted"), count("accepted"));
    assert_eq!(counted("tokens_rejected"), count("rejected"));
}

#[test]
fn ledger_and_emulators_agree_for_every_token() {
    let (code, report) = run_json(&["demo", "--devices", "2000"]);
    assert_proven(&report, code, 2000);
    assert!(report["rejected"].as_u64().unwrap() > 0, "the realistic mix refuses some: {report}");
    assert_eq!(report["duplicates"], json!(0));
    let measured = ["wall_seconds", "pushes_per_second", "server_cpu_seconds", "server_peak_rss_bytes"];
    assert!(measured.iter().all(|field| report[field].as_f64().unwrap() > 0.0), "{report}");
}

#[test]
fn the_push_services_are_those_that_are_named() {
    let (code, report) = run_json(&["demo", "--devices", "6000", "--providers", "fcm,apns,hms,gcm"]);
    assert_proven(&report, code, 6000);
    let attempts = |service: &str| report["emulators"][service]["attempts"].as_u64();
    assert!(["fcm", "apns", "hms", "gcm"].iter().all(|service| attempts(service) >= Some(1_500)), "{report}");
    let twice = ["demo", "--devices", "2", "--providers", "hms,hms"];
    assert_eq!(run_json(&twice).0, 2);
}

#[test]
fn nothing_is_lost_in_requests_to_many_devices_when_server_and_emulator_are_killed() {
    // A request reaches a whole chunk: with earlier answers the campaign would end before the kills.
    let run = ["--providers", "hms", "--kills", "2", "--kill-emulators", "--latency-ms", "200"];
    let (code, report) = run_json(&[&["demo", "--devices", "20000"], &run[..]].concat());
    assert_proven(&report, code, 20_000);
    assert_eq!((&report["kills"], &report["emulator_kills"]), (&json!(2), &json!(2)));
}

#[test]
fn nothing_is_lost_when_the_server_is_killed() {
    let (code, report) = run_json(&["demo", "--devices", "3000", "--kills", "3"]);
    assert_proven(&report, code, 3000);
    assert_eq!(report["kills"], json!(3));
    assert!(report["duplicates"].as_u64() <= report["duplicate_bound"].as_u64(), "{report}");
}

#[test]
fn a_server_that_is_killed_again_and_again_repeats_a_small_part_of_a_small_campaign() {
    // With later responses all of it would be in flight at each kill.
    let (code, report) = run_json(&["demo", "--devices", "4000", "--kills", "4", "--latency-ms", "100"]);
    assert_proven(&report, code, 4000);
    assert_eq!(report["kills"], json!(4));
    let duplicates = report["duplicates"].as_u64().unwrap();
    assert!((1..=600).contains(&duplicates), "{report}");
}

#[test]
fn a_server_that_is_killed_again_and_again_puts_few_deliveries_to_its_own_devices_in_doubt() {
    let run = ["demo", "--gateway", "--devices", "4000", "--kills", "2", "--latency-ms", "3000"];
    let (code, report) = run_json(&run);
    assert_eq!((code, &report["ok"], &report["kills"]), (0, &json!(true), &json!(2)), "{report}");
    // Without a limit it would be 4,400: all that is unconfirmed.
    assert!(report["duplicates"].as_u64().unwrap() <= 3_400, "{report}");
}

#[test]
fn nothing_is_lost_on_postgresql_when_the_server_is_killed() {
    if !Path::new("/usr/lib/postgresql").exists() {
        let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|word| word == "postgres"), "PostgreSQL is not installed");
        let _ = writeln!(std::io::stderr(), "skipped: PostgreSQL is not installed");
        return;
    }
    let (code, report) = run_json(&["demo", "--devices", "3000", "--kills", "3", "--store", "postgres"]);
    assert_proven(&report, code, 3000);
    assert_eq!(report["kills"], json!(3));
    assert!(report["duplicates"].as_u64() <= report["duplicate_bound"].as_u64(), "{report}");
}

#[test]
fn nothing_is_lost_when_the_emulators_are_killed() {
    let (code, report) = run_json(&["demo", "--devices", "3000", "--kill-emulators"]);
    assert_proven(&report, code, 3000);
    assert_eq!((&report["kills"], &report["emulator_kills"]), (&json!(0), &json!(3)));
}

#[test]
fn every_device_of_the_gateway_gets_it_while_the_server_is_killed() {
    let (code, report) = run_json(&["demo", "--gateway", "--devices", "300", "--kills", "2"]);
    assert_eq!((code, &report["ok"]), (0, &json!(true)), "{report}");
    let none = ["lost", "stuck", "disagreeing", "unmarked_duplicates", "rejected", "failed"];
    assert!(none.iter().all(|field| report[field] == json!(0)), "{report}");
    let all = ["devices", "accepted", "delivered"];
    assert!(all.iter().all(|field| report[field] == json!(300)), "{report}");
    assert_eq!((&report["kills"], &report["ledger_balanced"]), (&json!(2), &json!(true)));
    let gateway = |field: &str| report["gateway"][field].as_u64().unwrap();
    assert_eq!(gateway("connected_max_count"), 300);
    assert!(gateway("connections") >= 600, "all came back at least once: {report}");
    let duplicates = report["duplicates"].as_u64().unwrap();
    assert_eq!(gateway("receptions"), 300 + duplicates);
    assert!(duplicates <= report["duplicate_bound"].as_u64().unwrap(), "{report}");
}

#[test]
fn the_kill_suite_kills_a_server_whose_own_devices_are_connected() {
    let run = ["lab", "kill", "--only", "gateway", "--devices", "200", "--kills", "1"];
    let (code, report) = run_json(&run);
    assert_eq!((code, &report["ok"]), (0, &json!(true)), "{report}");
    assert_eq!((&report["lost"], &report["kills"]), (&json!(0), &json!(1)));
    let phase = &report["phases"][0];
    assert_eq!((&phase["phase"], &phase["delivered"]), (&json!("gateway"), &json!(200)), "{report}");
}

#[test]
fn a_device_of_the_gateway_gets_it_once_when_nothing_is_killed() {
    let (code, report) = run_json(&["demo", "--gateway", "--devices", "200"]);
    assert_eq!((code, &report["ok"]), (0, &json!(true)), "{report}");
    assert_eq!((&report["duplicates"], &report["delivered"]), (&json!(0), &json!(200)));
}

#[test]
fn a_directory_in_use_is_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("mine"), "").unwrap();
    let (code, report) = run_json(&["demo", "--devices", "2", "--keep", directory.path().to_str().unwrap()]);
    assert!(code == 2 && report["error"].as_str().unwrap().contains("not empty"), "{report}");
}
