//! Lines of Rust, divided into product and tests, and lines of generated files that git keeps.

use anyhow::{Context, bail};

use crate::codegen;
use crate::rust_file::RustFile;
use crate::workspace::Workspace;

/// Generated files that other commands than `cargo xtask codegen` write: figures of the laboratory, and its pages.
const WRITTEN_ELSEWHERE: [&str; 2] = ["crates/stentor-lab/src/advise/committed.jsonl", "docs/studies/"];
/// The one page among those of the laboratory that a person writes.
const WRITTEN_BY_HAND: &str = "docs/studies/README.md";

/// Lines of Rust, comments and empty ones included.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RustLines {
    pub(super) product: usize,
    pub(super) tests: usize,
}

/// Counts the lines of every Rust file of every member of the workspace.
pub(super) fn rust(workspace: &Workspace) -> anyhow::Result<RustLines> {
    let mut lines = RustLines::default();
    for source in workspace.sources()? {
        match RustFile::parse(&source.package, &source.path, &source.text) {
            Ok(file) => lines.add(&file),
            Err(finding) => bail!("{finding}"),
        }
    }
    Ok(lines)
}

impl RustLines {
    /// Adds the lines of a file.
    pub(super) fn add(&mut self, file: &RustFile) {
        let total = file.text.lines().count();
        let is_test_file = file.path.ends_with("_tests.rs");
        let is_test = |line: &usize| is_test_file || file.is_test_line(*line);
        let tests = (1..=total).filter(is_test).count();
        self.tests += tests;
        self.product += total - tests;
    }
}

/// Counts the lines of generated text files that git tracks.
pub(super) fn generated(workspace: &Workspace) -> anyhow::Result<usize> {
    let mut lines = 0;
    for path in workspace.tracked_files()?.iter().filter(|path| is_generated(path)) {
        let text = std::fs::read_to_string(workspace.root.join(path)).with_context(|| path.clone())?;
        lines += text.lines().count();
    }
    Ok(lines)
}

/// Returns true if a program writes this text file.
pub(super) fn is_generated(path: &str) -> bool {
    let is_page = path.ends_with(".md") && path != WRITTEN_BY_HAND;
    codegen::writes(path)
        || path == WRITTEN_ELSEWHERE[0]
        || (path.starts_with(WRITTEN_ELSEWHERE[1]) && is_page)
}
