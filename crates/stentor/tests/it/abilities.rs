//! Abilities in a subject's definition are tested: a subject that only claims them is refused.

use crate::device_clients::is_there;
use crate::process::{run_json, stentor};
use serde_json::{Value, json};
use std::path::Path;

/// Writes a definition of points with abilities and checks it.
fn checked(directory: &Path, role: &str, can: &str, run: &[&str]) -> (i32, Value) {
    let file = directory.join("subject.toml");
    let text = format!(
        "id = 'rest+json/test/x'\nops = ['points']\nroles = ['{role}']\nrun = {run:?}\ncan = ['{can}']\n"
    );
    std::fs::write(&file, text).unwrap();
    run_json(&["lab", "subject", "check", "--definition", file.to_str().unwrap()])
}

#[test]
fn a_subject_that_does_not_do_what_it_says_that_it_can_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let program = stentor(&[]).get_program().to_owned().into_string().unwrap();
    let claims = [
        ("client", "insert", "0 times of rows for 5 samples"),
        ("client", "tls", "0 answers and 5 errors instead of 5 answers"),
        ("client", "tls-client", "0 answers and 5 errors instead of 5 answers"),
        ("client", "fresh", "1 connections for 5 exchanges"),
        ("server", "tls", "agreeing on TLS"),
        ("server", "tls-server", "agreeing on TLS"),
        ("server", "store", "0 rows and 0 pages, not complete, instead of the 14 rows"),
    ];
    for (role, can, reason) in claims {
        let played = |manner: &str| {
            let speak = [&*program, "lab", "subject", "speak", "rest+json", "--manner", manner];
            checked(directory.path(), role, can, &speak)
        };
        let (code, report) = played("boastful");
        let error = report["error"].as_str().unwrap_or_default();
        assert!(code == 1 && error.contains(&format!("refused: it says that it can {can:?}")), "{report}");
        assert!(error.contains(reason), "{report}");
        let (code, report) = played("honest");
        assert_eq!((code, &report["ok"]), (0, &json!(true)), "{report}");
    }
    let (code, report) =
        checked(directory.path(), "client", "fly", &[&program, "lab", "subject", "speak", "rest+json"]);
    assert!(code == 1 && report["error"].as_str().unwrap().contains("the unknown ability"), "{report}");
}

#[test]
fn a_client_that_trusts_too_much_or_keeps_too_little_is_refused() {
    if !is_there("python3") {
        let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
        assert!(!required.contains("judges") && !required.contains("subjects"), "there is no python3");
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/subjects/python/subject.py");
    let script = std::fs::read_to_string(script).unwrap();
    let lax = "self.context.check_hostname = False";
    let trusts_all = format!("{lax}; self.context.verify_mode = ssl.CERT_NONE");
    let trusted = "self.context.load_verify_locations(certificate)";
    let mistakes = [
        ("tls", trusted, trusts_all.as_str(), "whose certificate is not one that it trusts"),
        ("tls", trusted, &format!("{trusted}; {lax}"), "whose certificate is for another name"),
        (
            "insert",
            "page == self.pages)",
            "False)",
            "7 rows and 1 pages, not complete, instead of the 7 rows",
        ),
        ("insert", "enumerate(points, start)", "enumerate(points)", "3 rows and 5 pages"),
        ("fresh", "factors.get(\"connection\") == \"fresh\"", "False", "1 connections for 5 exchanges"),
    ];
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("subject.py");
    for (can, right, wrong, reason) in mistakes {
        assert!(script.contains(right), "{right}");
        std::fs::write(&file, script.replace(right, wrong)).unwrap();
        let run = ["python3", file.to_str().unwrap(), "rest+json"];
        let (code, report) = checked(directory.path(), "client", can, &run);
        let error = report["error"].as_str().unwrap_or_default();
        assert!(code == 1 && error.contains("refused") && error.contains(reason), "{wrong}: {report}");
    }
}
