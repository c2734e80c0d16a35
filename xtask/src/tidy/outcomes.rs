//! Outcomes: one module of the server alone interprets a push service's outcome.

use crate::finding::TidyFinding;
use crate::rust_file::RustFile;

/// The crate that must not read outcomes, and its one module that does.
const HOUSE: &str = "crates/stentor-server/src/";
const ROOM: &str = "crates/stentor-server/src/pipeline/settle";

/// Reports every other place of the server that names an outcome.
pub(crate) fn check(file: &RustFile) -> Vec<TidyFinding> {
    if !file.path.starts_with(HOUSE) || file.path.starts_with(ROOM) {
        return Vec::new();
    }
    let tokens = &file.tokens;
    let named = tokens
        .windows(3)
        .filter(|part| part[0].word == "Outcome" && part[1].word == ":" && part[2].word == ":");
    let outside_tests =
        named.filter(|part| !file.is_test_line(part[0].line) && !file.path.contains("/tests"));
    outside_tests
        .map(|part| {
            let sentence = "only pipeline::settle reads an outcome: get the needed facts from it";
            TidyFinding::new(&file.path, part[0].line, sentence)
        })
        .collect()
}
