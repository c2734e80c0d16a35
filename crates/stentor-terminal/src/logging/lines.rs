//! Limits on log lines: a value cannot create another line or field, cannot move the cursor, and has a bounded length, even if an attacker
//! chose it.
//!
//! Callers need not care: values go through [`BoundedFields`], and whole lines through [`safe_line`].

use std::borrow::Cow;
use std::fmt::{self, Debug, Write as _};

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

/// Largest value of a field; the rest is counted.
pub(super) const FIELD_MAX_BYTES: usize = 4 * 1_024;
/// Largest line; the fields of a line of JSON are cut until it fits, a line of text is cut at its end.
pub(super) const LINE_MAX_BYTES: usize = 32 * 1_024;
/// Length to which each text in an oversized line of JSON is cut.
const CUT_TEXT_MAX_BYTES: usize = 512;
/// Most texts of which such a part is kept.
const CUT_TEXTS_MAX_COUNT: usize = 32;

/// The format of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    /// For people.
    Text,
    /// For programs, an object each.
    Json,
}

/// Writes the fields of spans and events as text.
pub(super) struct BoundedFields;

impl<'writer> FormatFields<'writer> for BoundedFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut visitor = FieldVisitor { writer, is_first: true, result: Ok(()) };
        fields.record(&mut visitor);
        visitor.result
    }
}

struct FieldVisitor<'writer> {
    writer: Writer<'writer>,
    is_first: bool,
    result: fmt::Result,
}

impl Visit for FieldVisitor<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Fields of a line from the `log` crate; the line has them already.
        if self.result.is_err() || field.name().starts_with("log.") {
            return;
        }
        let mut text = BoundedText::default();
        self.result = write!(text, "{value:?}").and_then(|()| self.put(field.name(), &text));
        self.is_first = false;
    }
}

impl FieldVisitor<'_> {
    fn put(&mut self, name: &str, BoundedText { text, cut_bytes }: &BoundedText) -> fmt::Result {
        if !self.is_first {
            self.writer.write_char(' ')?;
        }
        match name {
            "message" => self.writer.write_str(&escaped(text, LineKind::Text))?,
            _ if is_word(text) || is_quoted(text) => write!(self.writer, "{name}={text}")?,
            _ => write!(self.writer, "{name}={text:?}")?,
        }
        if *cut_bytes > 0 { write!(self.writer, "… ({cut_bytes} bytes more)") } else { Ok(()) }
    }
}

/// The beginning of a text, and the length of the omitted rest.
#[derive(Default)]
struct BoundedText {
    text: String,
    cut_bytes: usize,
}

impl fmt::Write for BoundedText {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = if self.cut_bytes > 0 { 0 } else { FIELD_MAX_BYTES.saturating_sub(self.text.len()) };
        let prefix = beginning(more, room);
        self.text.push_str(prefix);
        self.cut_bytes += more.len() - prefix.len();
        Ok(())
    }
}

/// Returns the longest beginning of a text that fits.
fn beginning(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

/// Returns true if a character moves the cursor, ends a line, or changes the display of others.
const fn is_unsafe(letter: char) -> bool {
    matches!(letter, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Returns true if a value can be distinguished from its surroundings without quotes.
fn is_word(text: &str) -> bool {
    let is_part = |letter: char| {
        !is_unsafe(letter) && !letter.is_whitespace() && !matches!(letter, '"' | '=' | '{' | '}')
    };
    !text.is_empty() && text.chars().all(is_part)
}

/// Returns true if a value is already quoted, like every text in debug format.
fn is_quoted(text: &str) -> bool {
    let Some(inner) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return false };
    let mut is_escaped = false;
    for letter in inner.chars() {
        if is_unsafe(letter) || letter == '"' && !is_escaped {
            return false;
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    !is_escaped
}

fn escaped(text: &str, kind: LineKind) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match kind {
            _ if !is_unsafe(letter) => out.push(letter),
            LineKind::Text => out.extend(letter.escape_debug()),
            // All of them fit four digits; outside of strings there are none.
            LineKind::Json => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
        }
    }
    out.into()
}

/// Returns a line in a form that is safe to write. Its only line feed is the last character.
pub(super) fn safe_line(line: &[u8], kind: LineKind) -> Cow<'_, [u8]> {
    let Ok(text) = std::str::from_utf8(line) else {
        return safe_line(String::from_utf8_lossy(line).as_bytes(), kind).into_owned().into();
    };
    let body = text.strip_suffix('\n').unwrap_or(text);
    if body.len() <= LINE_MAX_BYTES && !body.contains(is_unsafe) {
        return line.into();
    }
    let body = if body.len() <= LINE_MAX_BYTES { body.into() } else { shortened(body, kind) };
    format!("{}\n", escaped(&body, kind)).into_bytes().into()
}

fn shortened(body: &str, kind: LineKind) -> Cow<'_, str> {
    let prefix = beginning(body, LINE_MAX_BYTES);
    let object = match kind {
        LineKind::Text => return format!("{prefix}… ({} bytes more)", body.len() - prefix.len()).into(),
        LineKind::Json => serde_json::from_str::<Value>(body),
    };
    let mut object = object.unwrap_or_default();
    let mut texts_left = CUT_TEXTS_MAX_COUNT;
    cut(&mut object, &mut texts_left);
    object.to_string().into()
}

fn cut(value: &mut Value, texts_left: &mut usize) {
    match value {
        Value::String(text) => {
            let max_bytes = if *texts_left > 0 { CUT_TEXT_MAX_BYTES } else { 0 };
            *texts_left = texts_left.saturating_sub(1);
            let prefix = beginning(text, max_bytes);
            if prefix.len() < text.len() {
                *text = format!("{prefix}… ({} bytes more)", text.len() - prefix.len());
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| cut(value, texts_left)),
        Value::Object(fields) => fields.values_mut().for_each(|value| cut(value, texts_left)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests;
