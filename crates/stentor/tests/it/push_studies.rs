//! The push services of albertengo-2020 over separate links.

use crate::process::run_json;
use crate::studies::NO_GATE;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use stentor_lab::record;

/// Runs a part of a study over links, if the machine supports them.
fn over_a_link(study: &str, out: &Path, further: &[&str]) -> (i32, Value) {
    let gate = &NO_GATE[..4];
    let out = out.to_str().unwrap();
    let small = ["lab", "run", study, "--forks", "1", "--samples", "2", "--out", out];
    run_json(&[&small, gate, further].concat())
}

#[test]
fn gcm_and_fcm_run_over_two_links_between_three_namespaces_and_with_the_delay_of_the_paper() {
    let directory = tempfile::tempdir().unwrap();
    let levels =
        ["--factor", "payload=256 B", "--factor", "push_tls=on", "--factor", "provider_delay=0 ms,paper"];
    let wish = ["--subject", "GCM,FCM", "--variant", "paper", "--link", "lan", "--gateway-link", "4g"];
    let (code, report) = over_a_link("albertengo-2020", directory.path(), &[&wish[..], &levels].concat());
    assert_eq!((code, &report["forks"]), (0, &json!({ "valid": 4, "invalid": 0 })), "{report}");
    let records = record::read_directory(directory.path()).unwrap();
    if records[0].env.rig != "netns" {
        let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
        assert!(
            !required.split(',').any(|word| word.trim() == "rig"),
            "no links (STENTOR_TEST_REQUIRE wants them)"
        );
        // The output of a passing test is captured, so this writes to the real standard error; a failure to write is ignored.
        let _ = writeln!(std::io::stderr(), "skipped: no namespaces with links between them");
        return;
    }
    for one in &records {
        let behind = one.link.behind.as_ref().expect("a second link");
        assert_eq!((one.link.profile.as_str(), behind.profile.as_str()), ("lan", "4g"), "{one:?}");
        let delay_ms = match (one.cell["provider_delay"].as_str(), one.subject.label.as_str()) {
            ("paper", "GCM") => [155.0, 276.0],
            ("paper", _) => [280.0, 317.0],
            _ => [0.0, 0.0],
        };
        // The second link alone takes at least 30 ms each way.
        let ms = |phase: &str| one.latency[phase].mean / 1e6;
        let (up, both) = (ms("owd"), ms("rtt"));
        assert!(
            up > 30.0 + delay_ms[0] && both > 60.0 + delay_ms[0] + delay_ms[1],
            "{up} of {both}: {one:?}"
        );
        let bytes = one.bytes.as_ref().unwrap();
        assert_eq!(
            (bytes.source.as_str(), bytes.handshake.ip),
            ("capture", 0),
            "a kept connection: {bytes:?}"
        );
        assert!(bytes.up.ip > bytes.up.payload && bytes.down.ip > bytes.down.payload, "{bytes:?}");
    }
}
