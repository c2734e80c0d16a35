//! The documentation page from which a client of the raw socket is written.

use super::HELLO_MAX_BYTES;
use super::envelope::{ENCODINGS, EnvelopeField, FIELDS};
use crate::contract::ErrorCode;
use crate::contract::description::{OperationShape, description};

const PAGE: &str = include_str!("page.md");
const CLIENT: &str = include_str!("../../../../../examples/socket_client.py");

/// Writes the page.
#[must_use]
pub fn page() -> String {
    let parts = [
        ("{hello_max_bytes}", HELLO_MAX_BYTES.to_string()),
        ("{encodings}", encodings()),
        ("{fields}", fields()),
        ("{operations}", operations()),
        ("{errors}", errors()),
        ("{client}", CLIENT.to_owned()),
    ];
    parts.iter().fold(PAGE.to_owned(), |page, (mark, text)| page.replace(mark, text))
}

fn encodings() -> String {
    let line = |(encoding, about): &(&str, &str)| format!("| `{encoding}` | {about} |");
    lines(ENCODINGS.iter().map(line))
}

/// Writes one table for each message in a frame.
fn fields() -> String {
    let mut text = String::new();
    let mut message = "";
    for field in FIELDS {
        if field.message != message {
            message = field.message;
            text.push_str(&format!("\n| {message} | number | kind | |\n|---|---|---|---|\n"));
        }
        let EnvelopeField { name, number, kind, about, .. } = field;
        text.push_str(&format!("| `{name}` | {number} | `{kind}` | {about} |\n"));
    }
    text.trim().to_owned()
}

fn operations() -> String {
    let numbers = &description().numbers;
    let number = |one: &OperationShape| numbers.operation(one.facts.name).unwrap_or_default();
    let mut all: Vec<_> = description().operations.iter().map(|one| (number(one), one.facts)).collect();
    all.sort_by_key(|(number, _)| *number);
    let line = |(number, facts): &(u32, crate::contract::Facts)| {
        // A table row is a single line.
        let about = facts.sentences().replace('|', "\\|").replace('\n', " ");
        format!("| {number} | `{}` | {about} |", facts.name)
    };
    lines(all.iter().map(line))
}

fn errors() -> String {
    let mut all = ErrorCode::ALL.to_vec();
    all.sort_by_key(|code| code.number());
    let line = |code: &ErrorCode| format!("| {} | `{}` | {} |", code.number(), code.as_str(), code.title());
    lines(all.iter().map(line))
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::table::OPERATIONS;

    #[test]
    fn every_operation_and_every_error_is_one_whole_row() {
        let page = page();
        let names = OPERATIONS.iter().map(|facts| facts.name);
        for name in names.chain(ErrorCode::ALL.iter().map(|code| code.as_str())) {
            let mark = format!(" | `{name}` | ");
            let row = page.lines().find(|line| line.contains(&mark)).unwrap_or_else(|| panic!("{name}"));
            assert!(row.starts_with("| ") && row.ends_with(" |"), "{row}");
        }
    }
}
