//! Standard output: tables and facts for people, one JSON object on one line for programs.

use crate::failure::judge;
use crate::logging;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde_json::{Value, json};
use std::io::{self, Write};
pub use stentor_stage::text::{cell, thousands};

/// The format of the output: for people or for programs.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    json: bool,
}

impl Output {
    /// Writes JSON when `json` is set, text otherwise.
    pub const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Returns true if the output is for programs.
    pub const fn is_json(self) -> bool {
        self.json
    }

    /// Writes a result: the object for programs, the text for people.
    pub fn result(self, object: &Value, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        if self.json { line(&object.to_string()) } else { line(text().trim_end()) }
    }

    /// Writes a line for people only.
    pub fn say(self, text: &str) -> anyhow::Result<()> {
        if self.json { Ok(()) } else { line(text) }
    }

    /// Writes an error: a sentence to standard error, and for programs an object to standard output.
    pub fn error(self, error: &anyhow::Error) {
        let (exit, code) = judge(error);
        let sentence = format!("{error:#}");
        if self.json {
            let object = json!({"error": sentence, "code": code, "exit_code": exit as u8});
            // If standard output is closed, the error has no reader left.
            let _ = line(&object.to_string());
        }
        note(&format!("stentor: {sentence}"));
    }
}

/// Writes a line to standard output.
pub fn line(text: &str) -> anyhow::Result<()> {
    match writeln!(io::stdout().lock(), "{text}") {
        // A reader such as `head` that closes early is no failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Writes a line to standard error, where progress and warnings go. It goes through the log if there is one, which never blocks.
pub fn note(text: &str) {
    if !logging::hand_over(text) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}

/// Lays out rows below a header.
pub fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    trimmed(&table)
}

/// Lays out rows of a name and numbers, the numbers to the right.
pub fn ledger<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 3));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    trimmed(&table)
}

fn trimmed(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Lays out the fields of an object, one per line, in the server's order of names; empty ones are left out.
pub fn facts(object: &Value) -> String {
    let Some(fields) = object.as_object() else { return cell(object) };
    let shown = || fields.iter().filter(|(_, value)| !is_empty(value));
    let width = shown().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = shown().map(|(name, value)| format!("{name:width$}  {}", cell(value)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Lays out a list of objects as a table with chosen fields.
pub fn listing<const N: usize>(list: &Value, fields: [&str; N]) -> String {
    let rows = list.as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        return "(none)".to_owned();
    }
    table(fields, rows.iter().map(|row| fields.map(|field| cell(&row[field]))))
}

/// Adds the option for the next page to a page of a list.
pub fn paged(table: String, page: &Value, option: &str) -> String {
    match page["next"].as_str() {
        Some(next) => format!("{table}\n(more: {option} {next})"),
        None => table,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
