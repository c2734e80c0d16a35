//! Adapters: the folders that the registry of push services names. A macro declares them as modules, so that tools which read source text
//! alone, such as rustfmt, do not find them and need a list.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use crate::finding::TidyFinding;
use crate::rust_file::RustFile;
use crate::workspace::Workspace;

/// The file with the registry.
const REGISTRY: &str = "crates/stentor-core/src/provider.rs";
/// Parent of the folders.
const HOME: &str = "crates/stentor-providers/src";

/// Lists the files in which the adapters' folders begin.
pub(crate) fn roots(files: &[RustFile]) -> Vec<String> {
    let registry = files.iter().find(|file| file.path == REGISTRY);
    let lines = registry.map(|file| file.text.lines()).into_iter().flatten();
    lines.filter_map(folder).map(|folder| format!("{HOME}/{folder}/mod.rs")).collect()
}

/// Returns the folder that a row of the registry names: `fcm` of `fcm: Fcm = 1, "fcm", "…";`.
fn folder(line: &str) -> Option<&str> {
    let (folder, kind) = line.trim().split_once(": ")?;
    let is_word = folder.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    (is_word && kind.contains(" = ") && kind.ends_with(';')).then_some(folder)
}

/// Reports the files of adapters that rustfmt would change.
pub(crate) fn check(workspace: &Workspace, files: &[RustFile]) -> anyhow::Result<Vec<TidyFinding>> {
    let mut command = Command::new("rustfmt");
    command.args(["--check", "--files-with-diff", "--edition", "2024"]).args(roots(files));
    let output = command.current_dir(&workspace.root).output().context("rustfmt could not be started")?;
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    let finding = |path: &str| {
        let sentence = "is not formatted: run `rustfmt` on it, for `cargo fmt` does not know of it";
        TidyFinding::new(&workspace.relative(Path::new(path)), 1, sentence)
    };
    let mut findings: Vec<_> = listing.lines().map(finding).collect();
    if findings.is_empty() && !output.status.success() {
        findings.push(TidyFinding::new(REGISTRY, 1, String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(findings)
}
