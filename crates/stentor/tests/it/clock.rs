//! The clock's self-test by the command.

use crate::process::run;
use serde_json::Value;
use std::io::Write;

/// Exit code of a command without an available link.
const NO_LINK: i32 = 6;
/// On a busy machine the bounds may be exceeded, but not every time.
const TRIES: usize = 3;

#[test]
fn the_clocks_self_test_stays_within_its_bounds_and_its_exit_code_says_what_its_checks_say() {
    let mut report = Value::Null;
    for _ in 0..TRIES {
        let (code, found) = self_test();
        if code == NO_LINK {
            return skip(&found);
        }
        agrees(code, &found);
        report = found;
        if code == 0 {
            return;
        }
    }
    panic!("out of its bounds {TRIES} times, the last: {}", report["checks"]);
}

fn self_test() -> (i32, Value) {
    let output = run(&["lab", "clock", "selftest", "--json"]);
    let answer = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_str(answer.lines().last().unwrap_or_default()).unwrap_or_default();
    let code = output.status.code().expect("an end");
    // A trial that broke off has neither checks nor a reason to be skipped: its own output explains the failure.
    let has_ended = code == NO_LINK || report["checks"].is_array();
    assert!(has_ended, "exit {code}: {answer}{}", String::from_utf8_lossy(&output.stderr));
    (code, report)
}

/// Logs that there is no link, outside the captured output, or fails if `STENTOR_TEST_REQUIRE` lists `rig`.
fn skip(report: &Value) {
    let why = report["error"].as_str().expect("a reason");
    assert!(!why.is_empty(), "{report}");
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|word| word == "rig"),
        "{why} (STENTOR_TEST_REQUIRE does not allow to skip it)"
    );
    // The output of a passing test is captured, so this writes to the real standard error; a failure to write is ignored.
    let _ = writeln!(std::io::stderr(), "skipped: the clock's self-test, {why}");
}

/// On any machine: every check agrees with its own figures, and the exit code agrees with all checks.
fn agrees(code: i32, report: &Value) {
    let checks = report["checks"].as_array().expect("a list");
    for method in ["equal ways", "a slower way back"] {
        let named = |check: &&Value| check["name"].as_str().is_some_and(|name| name.starts_with(method));
        assert_eq!(checks.iter().filter(named).count(), 4, "{method}: {report}");
    }
    let is_within = |check: &Value| {
        let number = |field: &str| check[field].as_f64().expect("a number");
        (number("measured") - number("wanted")).abs() <= number("bound")
    };
    assert!(
        checks.iter().all(|check| check["ok"] == is_within(check)),
        "a check contradicts its figures: {report}"
    );
    let all = checks.iter().all(|check| check["ok"] == true);
    assert_eq!((report["within_bounds"].as_bool(), code), (Some(all), i32::from(!all)), "{report}");
    // Both clocks really differ: the measured drift is the one that was set.
    let drift = checks.iter().find(|check| check["unit"] == "ppm").expect("a drift");
    assert!(drift["wanted"].as_f64() == Some(50.0) && drift["measured"].as_f64() != Some(0.0), "{drift}");
}
