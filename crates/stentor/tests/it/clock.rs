//! The clock's self-test by the command.

use crate::process::run;
use serde_json::Value;

/// What a command gets where no link can be had.
const NO_LINK: i32 = 6;

/// A busy machine may leave the bounds, so what is proven is that the exit code and the checks say the same.
#[test]
fn the_clocks_self_test_says_of_every_check_what_was_true_and_its_exit_code_says_whether_all_hold() {
    let output = run(&["lab", "clock", "selftest", "--json"]);
    let (told, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_str(told.lines().last().unwrap_or_default()).unwrap_or_default();
    if output.status.code() == Some(NO_LINK) {
        assert!(told["error"].as_str().is_some_and(|error| !error.is_empty()), "{told} {said}");
        return;
    }
    let checks = told["checks"].as_array().expect("a list");
    let methods = ["equal ways", "a slower way back"];
    for method in methods {
        let of_method = || {
            checks.iter().filter(|check| check["name"].as_str().is_some_and(|name| name.starts_with(method)))
        };
        assert_eq!(of_method().count(), 4, "{method}: {told}");
    }
    let is_within = |check: &&Value| {
        let number = |field: &str| check[field].as_f64().expect("a number");
        (number("measured") - number("wanted")).abs() <= number("bound")
    };
    let holds = checks.iter().all(|check| check["ok"] == is_within(&check));
    assert!(holds, "a check contradicts its own figures: {told}");
    let all = checks.iter().all(|check| check["ok"] == true);
    assert_eq!(
        (told["within_bounds"].as_bool(), output.status.code()),
        (Some(all), Some(i32::from(!all))),
        "{told}"
    );
    // Both clocks really differ: the drift that was set is the drift that was found, or the check says so.
    let drift = checks.iter().find(|check| check["unit"] == "ppm").expect("a drift");
    assert!(drift["wanted"].as_f64() == Some(50.0) && drift["measured"].as_f64() != Some(0.0), "{drift}");
}
