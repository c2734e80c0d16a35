//! Text: no tracked file contains the path of the checkout.

use crate::finding::TidyFinding;
use crate::workspace::Workspace;

/// Further words that no tracked file may contain.
const FORBIDDEN: &[&str] = &[];

/// Reports forbidden text in the tracked files; files that are not text are left alone.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<Vec<TidyFinding>> {
    let root = workspace.root.to_string_lossy().into_owned();
    let mut findings = Vec::new();
    for path in workspace.tracked_files()? {
        if let Ok(text) = std::fs::read_to_string(workspace.root.join(&path)) {
            findings.extend(check_text(&path, &text, &root, FORBIDDEN));
        }
    }
    Ok(findings)
}

/// Reports the lines of one text that name the checkout's folder or a forbidden word.
pub(crate) fn check_text(path: &str, text: &str, root: &str, forbidden: &[&str]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if names_folder(line, root) {
            let sentence = "names the folder of this checkout: write the path relative to the project";
            findings.push(TidyFinding::new(path, index + 1, sentence));
        }
        if let Some(word) = forbidden.iter().find(|word| line.contains(**word)) {
            findings.push(TidyFinding::new(
                path,
                index + 1,
                format!("says \"{word}\", which is not the project's: remove it"),
            ));
        }
    }
    findings
}

/// Returns true if a line holds `root` as a whole path. A root of one part, as in a container, is too common to be searched for.
fn names_folder(line: &str, root: &str) -> bool {
    let continues = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/');
    let starts = |before: &str| !before.ends_with(continues);
    let ends = |after: &str| !after.starts_with(|letter| continues(letter) && letter != '/');
    let mut places = line.match_indices(root);
    root.matches('/').count() > 1
        && places.any(|(at, _)| starts(&line[..at]) && ends(&line[at + root.len()..]))
}
