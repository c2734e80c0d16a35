//! Links by the command, on every level available on this machine.

use crate::process::{run, run_json};

/// Exit code of a command that requires an unavailable level.
const NO_LINK: i32 = 6;

#[test]
fn a_level_that_is_shown_as_available_runs_a_command_and_any_other_says_why_not() {
    let (code, shown) = run_json(&["lab", "link", "show"]);
    assert_eq!(code, 0, "{shown}");
    let levels = shown["levels"].as_array().expect("a list");
    let loopback = levels.iter().find(|level| level["level"] == "loopback").expect("the lowest");
    assert_eq!(loopback["available"], true, "{loopback}");
    for level in levels {
        let name = level["level"].as_str().expect("a name");
        let output = run(&["lab", "link", "run", "--level", name, "--json", "--", "sh", "-c", "exit 7"]);
        let said = String::from_utf8_lossy(&output.stderr);
        let code = if level["available"] == true { 7 } else { NO_LINK };
        assert_eq!(output.status.code(), Some(code), "{name}: {said}");
        assert!(code == 7 || !said.is_empty(), "{name} is refused without a word");
        for missing in level["cannot_test"].as_array().expect("a list") {
            let missing = missing.as_str().expect("words");
            assert!(code == NO_LINK || said.contains(missing), "{name} is silent about {missing}: {said}");
        }
    }
}
