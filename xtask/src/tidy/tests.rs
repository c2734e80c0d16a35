//! Each rule is fed a small source that breaks it and one that keeps it.

mod floors;
mod glossary;
mod house;
mod links;
mod names;
mod source;
mod vendors;

use crate::finding::TidyFinding;
use crate::rust_file::RustFile;

/// Parses a sample as if it were a file of the server.
fn file(path: &str, text: &str) -> RustFile {
    RustFile::parse("stentor-server", path, text).unwrap()
}

/// Parses a sample at a path of no special meaning.
fn sample(text: &str) -> RustFile {
    file("crates/stentor-server/src/service.rs", text)
}

/// Returns the lines of the findings.
fn lines(findings: &[TidyFinding]) -> Vec<usize> {
    findings.iter().map(|finding| finding.line).collect()
}
