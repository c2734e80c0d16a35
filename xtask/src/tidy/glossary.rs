//! The glossary: each word once, each word in the code, and each number's prefix one that the code writes.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::TidyFinding;
use crate::rust_file::RustFile;
use crate::workspace::Workspace;

/// The page with the words.
const PAGE: &str = "GLOSSARY.md";

/// Reports words of the glossary that are there twice or are missing in the code.
pub(crate) fn check(workspace: &Workspace, files: &[RustFile]) -> anyhow::Result<Vec<TidyFinding>> {
    let page = std::fs::read_to_string(workspace.root.join(PAGE))?;
    let identifiers: BTreeSet<String> =
        files.iter().flat_map(|file| &file.tokens).map(|token| plain(&token.word)).collect();
    let text: Vec<String> = files.iter().map(|file| file.text.to_lowercase()).collect();
    let is_known = |word: &str| {
        let (name, lower) = (plain(word), word.to_lowercase());
        identifiers.iter().any(|known| known.contains(&name)) || text.iter().any(|text| text.contains(&lower))
    };
    Ok(findings(&page, is_known))
}

/// Checks the rows of a page against the words of the code.
pub(crate) fn findings(page: &str, is_known: impl Fn(&str) -> bool) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, row) in page.lines().enumerate() {
        let line = index + 1;
        for word in words(row) {
            if let Some(before) = seen.insert(plain(word), line) {
                findings.push(TidyFinding::new(
                    PAGE,
                    line,
                    format!("\"{word}\" stands in line {before} already"),
                ));
            }
            if !is_known(word) {
                findings.push(TidyFinding::new(
                    PAGE,
                    line,
                    format!("the code has no \"{word}\": remove or rename it"),
                ));
            }
        }
        for prefix in prefixes(row).filter(|prefix| !is_known(&format!("\"{prefix}\""))) {
            findings.push(TidyFinding::new(PAGE, line, format!("no number begins with {prefix}_")));
        }
    }
    findings
}

/// Returns the words that a row explains.
fn words(row: &str) -> impl Iterator<Item = &str> {
    let named = row.strip_prefix("| **").and_then(|rest| rest.split_once("** |"));
    named.map(|(names, _)| names.split(", ")).into_iter().flatten()
}

/// Returns the prefixes of numbers that a row names: `app` of `app_…`.
fn prefixes(row: &str) -> impl Iterator<Item = &str> {
    row.split('`').skip(1).step_by(2).filter_map(|code| code.strip_suffix("_…"))
}

/// Returns a word in lower case with letters and digits only, so that an identifier and a word compare equal.
fn plain(word: &str) -> String {
    word.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
