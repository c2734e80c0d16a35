use super::*;
use serde_json::{Value, json};

fn tools(rust: bool, compiler: bool, system: bool, emulator: bool) -> Tools {
    Tools { rust, compiler, system, emulator: emulator.then(PathBuf::new) }
}

#[test]
fn whatever_is_missing_is_said_with_the_command_that_installs_it() {
    let missing = tools(false, false, false, false).missing(true);
    assert!(missing[0].ends_with("`rustup target add aarch64-unknown-linux-gnu`"), "{missing:?}");
    let install = "`apt-get install -y gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static`";
    assert!(missing[1].ends_with(install), "{missing:?}");
    assert!(tools(true, true, true, true).missing(true).is_empty());
    let missing = tools(true, true, true, false).missing(true);
    assert!(
        missing.len() == 1 && missing[0].ends_with("`apt-get install -y qemu-user-static`"),
        "{missing:?}"
    );
}

#[test]
fn a_binary_that_is_there_needs_no_compilers() {
    assert!(tools(false, false, true, true).missing(false).is_empty());
}

fn record() -> Value {
    json!({
        "subject": {"label": "SOAP"}, "valid": true, "counts": {"sent": 2, "ok": 2},
        "env": {"emulated": "built for aarch64"}, "latency": {}, "first_call_ns": null,
        "start_ns": {"client": null, "server": null}, "cpu": {"client": null, "server": null}, "raw": [],
    })
}

#[test]
fn a_record_with_right_answers_and_without_times_is_well() {
    smoke::judge(&record()).unwrap();
}

#[test]
fn a_wrong_answer_or_any_time_in_a_record_is_an_error() {
    let changes = [
        ("valid", json!(false)),
        ("counts", json!({"sent": 2, "ok": 1})),
        ("counts", json!({"sent": 0, "ok": 0})),
        ("env", json!({"emulated": ""})),
        ("latency", json!({"rtt": {"p50": 1}})),
        ("first_call_ns", json!(7)),
        ("start_ns", json!({"client": 5, "server": null})),
        ("interruption", json!({"pages": 30, "silence_ns": 5})),
        ("raw", json!([{"path": "raw/samples"}])),
    ];
    for (name, value) in changes {
        let mut record = record();
        record[name] = value.clone();
        assert!(smoke::judge(&record).is_err(), "{name} is {value}");
    }
}

#[test]
fn a_subject_that_was_refused_is_an_error_and_one_that_cannot_be_here_is_not() {
    let not_run = json!([
        {"what": "SOAP (soap/stentor/rust)", "reason": "refused: digest 1 of 2 answers instead of 3"},
        {"what": "GCM", "reason": "it no longer exists"},
    ]);
    let refused = smoke::refused(&json!({ "not_run": not_run }));
    assert_eq!(refused, ["SOAP (soap/stentor/rust): refused: digest 1 of 2 answers instead of 3"]);
    assert!(smoke::refused(&json!({})).is_empty());
}
