//! Source code per operation: lines and files that serve one operation alone, counted in our own subjects.

use super::{PaperProtocol, ProbeReply, ProbeWord};
use std::path::Path;

/// The counted operation.
const OP: &str = "sort";
/// The other operations; a paragraph that names one of them does not serve one operation alone.
const OTHERS: [&str; 3] = ["echo", "array", "points"];
const CXF: &str = "java/cxf-2.7.4/src/main/java/stentor/lab/cxf";

/// Source files of a face that are specific to the protocol, in the folders of the subjects.
fn files(protocol: PaperProtocol) -> Vec<String> {
    let names: &[&str] = match protocol {
        PaperProtocol::Soap => &["Soap.java", "soap/Lab.java"],
        PaperProtocol::Rest => &["Rest.java"],
        PaperProtocol::XmlRpc => {
            return vec!["java/xmlrpc-3.1.3/src/main/java/stentor/lab/xmlrpc/ApacheXmlRpc.java".into()];
        }
    };
    names.iter().map(|name| format!("{CXF}/{name}")).collect()
}

/// Counts the source lines of one operation.
pub(super) fn lines(protocol: PaperProtocol, folder: Option<&Path>) -> ProbeReply {
    counted(protocol, folder, |counts| counts.iter().map(|(_, lines)| lines).sum(), "lines")
}

/// Counts the source files of one operation.
pub(super) fn touched(protocol: PaperProtocol, folder: Option<&Path>) -> ProbeReply {
    counted(protocol, folder, |counts| counts.iter().filter(|(_, lines)| *lines > 0).count(), "files")
}

fn counted(
    protocol: PaperProtocol,
    folder: Option<&Path>,
    sum: impl Fn(&[(String, usize)]) -> usize,
    unit: &'static str,
) -> ProbeReply {
    let Some(folder) = folder else {
        return ProbeReply::word(ProbeWord::NotCounted, "the sources of the subjects are not here");
    };
    let mut counts = Vec::new();
    for file in files(protocol) {
        let Ok(text) = std::fs::read_to_string(folder.join(&file)) else {
            return ProbeReply::word(ProbeWord::NotCounted, format!("{file} is not here"));
        };
        counts.push((file, lines_of(&text)));
    }
    let each =
        counts.iter().map(|(file, lines)| format!("{} {lines}", file.rsplit('/').next().unwrap_or(file)));
    let evidence = format!("lines for operation {OP}: {}", each.collect::<Vec<_>>().join(", "));
    if counts.iter().all(|(_, lines)| *lines == 0) {
        let why = "one handler takes every operation, so that none has lines of its own";
        return ProbeReply::word(ProbeWord::NotCounted, format!("{why} ({evidence})"));
    }
    ProbeReply::count(sum(&counts), unit, evidence)
}

/// Counts the lines of paragraphs that serve the operation alone, and other lines that name it.
pub(super) fn lines_of(text: &str) -> usize {
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let lines = || paragraph.lines().filter(|line| !line.trim().is_empty());
        let is_alone = names(paragraph, OP) && !OTHERS.iter().any(|other| names(paragraph, other));
        if is_alone { lines().count() } else { lines().filter(|line| names(line, OP)).count() }
    });
    paragraphs.sum()
}

/// Returns true if a text names an operation: as a word, or as the first part of a camel-case word.
fn names(text: &str, op: &str) -> bool {
    text.match_indices(op).any(|(at, _)| {
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let before = text[..at].chars().next_back().is_some_and(is_word);
        let after = text[at + op.len()..]
            .chars()
            .next()
            .is_some_and(|letter| is_word(letter) && !letter.is_uppercase());
        !before && !after
    })
}
