//! The feature tables of GCM and FCM, as printed for a user.

use std::collections::BTreeMap;

use crate::process::run_json;

#[test]
fn every_feature_of_gcm_and_fcm_is_there_but_multicast_in_one_request_of_fcm() {
    let (code, report) = run_json(&["lab", "features"]);
    assert_eq!(code, 0, "{report}");
    let rows = report["features"].as_array().unwrap();
    let text = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap().to_owned();
    let answers: BTreeMap<(String, String), String> =
        rows.iter().map(|row| ((text(row, "feature"), text(row, "service")), text(row, "answer"))).collect();
    assert_eq!((rows.len(), answers.len()), (38, 38), "{report}");
    // Table 1 of albertengo-2020 agrees for both connection servers.
    let missing = |feature: &str, service: &str| match feature {
        "HTTP: upstream" | "CCS: multicast" => true,
        "multicast" | "HTTP: plain text" => service == "FCM",
        _ => false,
    };
    for ((feature, service), answer) in &answers {
        assert_eq!(answer == "NO", missing(feature, service), "{feature} of {service}: {report}");
    }
    assert!(rows.iter().all(|row| !text(row, "seen").is_empty()), "{report}");
}
