//! Environment and time: nothing but the configuration reads the environment, nothing but a clock reads the time.

use crate::finding::TidyFinding;
use crate::rust_file::{RustFile, SourceToken};

/// Calls that read or change the environment, as the last two words of their path.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("env", "var"),
    ("env", "var_os"),
    ("env", "vars"),
    ("env", "vars_os"),
    ("env", "set_var"),
    ("env", "remove_var"),
    ("Env", "prefixed"),
    ("Env", "raw"),
];

/// Calls that read the wall clock. `Instant` is permitted: it measures a span and does not know the time of day.
const WALL_CLOCK: &[(&str, &str)] =
    &[("SystemTime", "now"), ("Timestamp", "now"), ("Zoned", "now"), ("Utc", "now"), ("Local", "now")];

/// Places that may do both, with the reason.
const FREE_PLACES: &[(&str, &str)] = &[
    ("crates/stentor/", "the binary is where the outside world comes in"),
    ("crates/stentor-lab-cli/", "so is the laboratory's, which also dates what callers and devices saw"),
    ("crates/stentor-stage/", "it starts processes in an environment of their own"),
    ("crates/stentor-emulators/", "an emulator is a foreign server with a clock of its own"),
    ("crates/stentor-machine/build.rs", "Cargo tells a build script its compiler by a variable"),
    ("xtask/", "a script"),
];

/// Reports every forbidden read of one file.
pub(crate) fn check(file: &RustFile) -> Vec<TidyFinding> {
    if FREE_PLACES.iter().any(|(place, _)| file.path.starts_with(place)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if !is_named(&file.path, "config") {
        let sentence = "only the configuration reads the environment: take the value as a parameter";
        findings.extend(calls(file, ENVIRONMENT, sentence));
    }
    if !is_named(&file.path, "clock") {
        findings.extend(calls(
            file,
            WALL_CLOCK,
            "only a Clock reads the time: take a `&dyn Clock` or the instant itself",
        ));
    }
    findings
}

fn calls(file: &RustFile, forbidden: &[(&str, &str)], sentence: &str) -> Vec<TidyFinding> {
    let tokens = &file.tokens;
    let hits = tokens
        .windows(4)
        .filter(|window| forbidden.iter().any(|(owner, function)| is_call(window, owner, function)));
    let outside_tests = hits.filter(|window| !file.is_test_line(window[0].line));
    outside_tests
        .map(|window| {
            let sentence = format!("{}::{} is read here, but {sentence}", window[0].word, window[3].word);
            TidyFinding::new(&file.path, window[0].line, sentence)
        })
        .collect()
}

fn is_call(window: &[SourceToken], owner: &str, function: &str) -> bool {
    window[0].word == owner && window[1].word == ":" && window[2].word == ":" && window[3].word == function
}

/// Returns true if the file is `…/<name>.rs` or lies in a folder `<name>`.
fn is_named(path: &str, name: &str) -> bool {
    path.split('/').any(|part| part.strip_suffix(".rs").unwrap_or(part) == name)
}
