//! The benchmarks at a small size: their figures, and their checks of the sent messages. Rates are not tested here.

use crate::process::run_json;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;

fn has_numbers(report: &Value, fields: &[&str]) {
    for field in fields {
        let value = report.pointer(&format!("/{}", field.replace('.', "/")));
        assert!(value.and_then(Value::as_f64).is_some_and(|number| number > 0.0), "{field}: {report}");
    }
}

#[test]
fn a_benchmark_of_the_pipeline_tells_rates_the_fields_of_the_demo_and_the_limits_in_force() {
    let (code, report) = run_json(&["lab", "bench", "pipeline", "--devices", "3000", "--rounds", "1"]);
    assert_eq!(
        (code, &report["ok"], &report["lost"], &report["devices"]),
        (0, &json!(true), &json!(0), &json!(3000))
    );
    has_numbers(
        &report,
        &["pushes_per_second", "wall_seconds", "server_cpu_seconds", "campaign_peak_rss_bytes"],
    );
    assert_eq!(report["limits"]["quota"], "none", "{report}");
    assert_eq!(report["limits"]["sender.connections_max_count"], 64, "{report}");
}

#[test]
fn a_benchmark_of_acceptance_looks_for_every_promised_message_at_the_sink() {
    let accept = ["lab", "bench", "accept", "--messages", "300", "--callers", "8", "--seconds", "1"];
    let (code, report) = run_json(&accept);
    assert_eq!((code, &report["lost"], &report["accepted"]), (0, &json!(0), &json!(300)), "{report}");
    has_numbers(&report, &["accepted_per_second", "wall_seconds", "server_cpu_seconds", "latency_ms.p99"]);
    assert_eq!((&report["sustained_lost"], &report["at_half"]["lost"]), (&json!(0), &json!(0)), "{report}");
    has_numbers(&report, &["sustained_per_second", "settled_p99_ms", "server_cpu_us_in_all"]);
    has_numbers(&report, &["at_half.answered_ms.p99", "at_tenth.answered_ms.p99"]);
    // The rival is measured, or there is a reason for its absence.
    let rival = &report["rivals"][0];
    assert!(rival["rival_missing"].is_string() || rival["lost"] == json!(0), "{report}");
}

#[test]
fn a_benchmark_of_the_import_tells_devices_per_second() {
    let (code, report) = run_json(&["lab", "bench", "import", "--devices", "3000"]);
    assert_eq!((code, &report["devices"]), (0, &json!(3000)), "{report}");
    has_numbers(&report, &["devices_per_second", "wall_seconds", "server_cpu_microseconds_per_device"]);
}

#[test]
fn imports_and_202s_are_measured_on_postgresql_with_the_file_beside_them() {
    if !has_postgres() {
        return;
    }
    let (code, report) = run_json(&["lab", "bench", "import", "--devices", "3000", "--store", "postgres"]);
    assert_eq!((code, &report["devices"]), (0, &json!(3000)), "{report}");
    has_numbers(&report, &["devices_per_second", "beside_sqlite.devices_per_second.ratio"]);
    let accept = ["lab", "bench", "accept", "--messages", "300", "--callers", "8", "--store", "postgres"];
    let accept = [&accept[..], &["--seconds", "0"]].concat();
    let (code, report) = run_json(&accept);
    assert_eq!((code, &report["lost"], &report["accepted"]), (0, &json!(0), &json!(300)), "{report}");
    has_numbers(
        &report,
        &["database_cpu_microseconds_per_message", "beside_sqlite.accepted_per_second.sqlite"],
    );
}

/// Returns true if PostgreSQL is installed; it must be if `STENTOR_TEST_REQUIRE` lists it.
fn has_postgres() -> bool {
    if Path::new("/usr/lib/postgresql").exists() {
        return true;
    }
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|word| word == "postgres"), "PostgreSQL is not installed");
    let _ = writeln!(std::io::stderr(), "skipped: PostgreSQL is not installed");
    false
}

#[test]
fn several_servers_share_a_campaign_of_the_benchmark_and_the_simulation_takes_what_it_measured() {
    if !has_postgres() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut files = Vec::new();
    for nodes in ["1", "3"] {
        let shared = ["--nodes", nodes, "--store", "postgres", "--queue", "postgres", "--devices", "20000"];
        let (code, report) = run_json(&[&["lab", "bench", "pipeline"][..], &shared].concat());
        let each = report["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
        assert_eq!(
            (code, &report["lost"], each.len().to_string()),
            (0, &json!(0), nodes.to_owned()),
            "{report}"
        );
        has_numbers(&report, &["postgres_cpu_seconds", "processor_seconds_per_million_pushes"]);
        let sum: f64 = each.iter().filter_map(|node| node["server_cpu_seconds"].as_f64()).sum();
        assert!((sum - report["server_cpu_seconds"].as_f64().unwrap_or(0.0)).abs() < 0.01, "{report}");
        let attempts: u64 = each.iter().filter_map(|node| node["attempts"].as_u64()).sum();
        assert_eq!(attempts, 20_000, "{report}");
        let file = folder.path().join(nodes).display().to_string();
        std::fs::write(&file, report.to_string()).expect("written");
        files.push(file);
    }
    let (code, report) =
        run_json(&["lab", "scale", "--nodes", "1,2,8", "--measured", &files[0], "--measured", &files[1]]);
    assert_eq!((code, report["simulated"].as_array().map(Vec::len)), (0, Some(3)), "{report}");
    assert_eq!((&report["measured"][0]["nodes"], &report["measured"][1]["nodes"]), (&json!(1), &json!(3)));
    has_numbers(&report["measured"][1], &["server_us_per_push", "database_us_per_push"]);
}

#[test]
fn several_servers_without_anything_that_they_share_are_refused() {
    let (code, report) = run_json(&["lab", "bench", "pipeline", "--nodes", "2", "--store", "postgres"]);
    assert_eq!(code, 2, "{report}");
}

#[test]
fn a_benchmark_of_single_messages_loses_none_beside_a_campaign() {
    let (code, report) =
        run_json(&["lab", "bench", "urgent", "--devices", "20000", "--messages", "16", "--callers", "4"]);
    assert_eq!((code, &report["lost"]), (0, &json!(0)), "{report}");
    has_numbers(&report, &["answered.idle_ms.p99"]);
}

#[test]
fn a_benchmark_of_trouble_that_meets_no_device_counts_each_request_once() {
    let (_, report) = run_json(&[
        "lab",
        "bench",
        "trouble",
        "--share",
        "0",
        "--kind",
        "500",
        "--persistence",
        "once",
        "--devices",
        "1000",
        "--cell-seconds",
        "60",
    ]);
    let cell = &report["cells"][0];
    let counts = ["troubled", "left", "pending", "unsent", "requests"].map(|name| cell[name].as_u64());
    assert_eq!(counts, [Some(0), Some(0), Some(0), Some(0), Some(1000)], "{report}");
    has_numbers(cell, &["rate", "clean_rate", "single_p99_ms", "single_idle_p99_ms"]);
}

#[test]
fn a_benchmark_of_fairness_measures_the_tenth_app_and_counts_what_the_hostile_ones_did() {
    let kinds =
        "heavy-import,no-credential,dry-run,slow-upload,unfinished-bodies,schedules,tarpit,bad-answers";
    let (_, report) = run_json(&[
        "lab",
        "bench",
        "fair",
        "--kind",
        kinds,
        "--seconds",
        "4",
        "--idle-seconds",
        "2",
        "--devices",
        "500",
    ]);
    has_numbers(
        &report,
        &["idle_202_p99_ms", "hostile_202_p99_ms", "idle_first_push_ms", "hostile_first_push_ms"],
    );
    assert_eq!(
        (&report["idle"]["refused"], &report["hostile"]["refused"]),
        (&json!(0), &json!(0)),
        "{report}"
    );
    let apps = report["hostile_apps"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert_eq!(apps.len(), kinds.split(',').count(), "{report}");
    assert!(apps.iter().all(|app| app["asked"].as_u64() > Some(0)), "{report}");
}

#[test]
fn a_benchmark_of_the_faces_asks_each_of_them_for_one_record_and_says_why_there_is_no_rival() {
    let few = ["--seconds", "1", "--rounds", "1", "--warm-up-seconds", "0", "--connections", "2"];
    let (code, report) = run_json(&[&["lab", "bench", "faces", "--rivals", "none"][..], &few].concat());
    let faces = report["faces"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<&str> = faces.iter().filter_map(|face| face["face"].as_str()).collect();
    assert_eq!((code, &names[..]), (0, &["rest", "soap", "xmlrpc", "grpc", "socket"][..]), "{report}");
    for face in faces {
        has_numbers(face, &["calls", "calls_per_second", "cpu_us_per_call", "request_bytes", "reply_bytes"]);
        assert_eq!((&face["rival"], &face["rival_cpu_us_per_call"]), (&Value::Null, &Value::Null), "{face}");
    }
    assert_eq!(faces[0]["above_rest_us"], 0.0, "{report}");
    assert_eq!(faces[1]["rival_missing"], "left out by --rivals none", "{report}");
}

#[test]
fn a_benchmark_of_the_gateway_counts_every_message_at_its_devices_and_every_receipt() {
    let few = ["--connections", "40", "--rounds", "2", "--burst", "3", "--singles-per-second", "50"];
    let (code, report) = run_json(
        &[&["lab", "bench", "gateway", "--rivals", "none", "--singles-seconds", "1"][..], &few].concat(),
    );
    let counts = ["connections", "lost", "receipts_missing"].map(|name| report[name].as_u64());
    assert_eq!((code, counts), (0, [Some(40), Some(0), Some(0)]), "{report}");
    has_numbers(&report, &["connects_per_second", "broadcast_deliveries_per_second", "broadcast_last_ms"]);
    has_numbers(&report, &["single_p99_ms", "singles.messages", "storm.seconds_from_kill"]);
    has_numbers(&report["tls"], &["broadcast_deliveries_per_second", "burst_deliveries_per_second"]);
    assert_eq!(report["storm"]["is_complete"], true, "{report}");
    let rivals = report["rivals"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert!(rivals.len() == 2, "{report}");
    assert!(rivals.iter().all(|rival| rival["missing"] == "left out by --rivals none"), "{report}");
}
