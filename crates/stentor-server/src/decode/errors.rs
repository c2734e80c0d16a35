//! Converts the error of a decoder into a problem for the caller: the field, the reason, the nearest right name.

use crate::contract::{ErrorCode, Problem};

/// Similarity from which a known name is suggested for a wrong one.
const NEAR_SCORE: f64 = 0.75;
/// Longest part of a wrong word that is repeated to its sender.
const WORD_SHOWN_MAX_CHARS: usize = 100;

/// Converts a JSON error found at `path`.
pub(crate) fn of_json(path: &str, error: &serde_json::Error) -> Problem {
    if error.classify() == serde_json::error::Category::Data {
        return of_text(path, &error.to_string());
    }
    let detail = format!("the JSON cannot be read: {error}");
    Problem::new(ErrorCode::InvalidRequest, detail)
}

/// Converts a decoder's message about the value at `path`.
///
/// The message is parsed, because serde keeps nothing else: a decoder passes names and known words to its error as text, and JSON's error
/// consists of that text. An error type of our own would have to pass through every decoder in between, for the same result. Tests pin the
/// sentences, so that an update with another wording is noticed.
pub(crate) fn of_text(path: &str, message: &str) -> Problem {
    let message = message.rsplit_once(" at line ").map_or(message, |(sentence, _)| sentence);
    if let Some((name, known)) = unknown(message, "unknown field `") {
        return unknown_field(&child(path, name), name, &known);
    }
    if let Some((word, known)) = unknown(message, "unknown variant `") {
        return unknown_word(parent(path), word, &known);
    }
    let names = quoted(message);
    if message.starts_with("missing field") {
        return Problem::field(
            child(&parent(path), names.first().copied().unwrap_or_default()),
            "is missing",
        );
    }
    if message.starts_with("duplicate field") {
        return Problem::field(
            child(&parent(path), names.first().copied().unwrap_or_default()),
            "occurs twice",
        );
    }
    let field = parent(path);
    let own = field.rsplit('.').next().unwrap_or_default();
    let sentence =
        message.split_once(": ").filter(|(word, _)| *word == own).map_or(message, |(_, rest)| rest);
    Problem::field(field, in_plain_words(sentence))
}

/// Describes the expected value in the caller's words if the message names a type of this program.
fn in_plain_words(sentence: &str) -> String {
    let Some((found, expected)) = sentence.rsplit_once(", expected ") else { return sentence.to_owned() };
    let found = found.replace("invalid type: map", "invalid type: object");
    let expected = match expected {
        "u8" => &format!("a whole number from 0 to {}", u8::MAX),
        "u16" => &format!("a whole number from 0 to {}", u16::MAX),
        "u32" => &format!("a whole number from 0 to {}", u32::MAX),
        "u64" | "u128" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        known if known.starts_with("struct ") => "an object",
        // A name alone, as `"everyone"`, stands for a value without fields.
        "unit" => "no value",
        known => known,
    };
    format!("{found}, expected {expected}")
}

/// Finds the known name that is nearest to a wrong one, if any is near.
pub(crate) fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|name| (strsim::jaro_winkler(wrong, name), name));
    let best = scored.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (best.0 >= NEAR_SCORE).then_some(best.1)
}

/// Parses the unknown word and the known words out of a decoder's message. The unknown word may contain any character.
fn unknown<'a>(message: &'a str, opening: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let rest = message.strip_prefix(opening)?;
    if let Some((wrong, known)) = rest.rsplit_once("`, expected ") {
        return Some((wrong, quoted(known)));
    }
    Some((rest.rsplit_once('`').map_or(rest, |(wrong, _)| wrong), Vec::new()))
}

fn unknown_field(field: &str, name: &str, known: &[&str]) -> Problem {
    let problem = Problem::field(field, format!("unknown field `{name}`"));
    match nearest(name, known.iter().copied()) {
        Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
        None if known.is_empty() => problem,
        None => problem.with_hint(format!("known are {}", known.join(", "))),
    }
}

/// Refuses a word, with the nearest right one and the list of all.
fn unknown_word(field: String, word: &str, known: &[&str]) -> Problem {
    let problem = Problem::field(field, format!("unknown value `{}`", shortened(word)));
    let all = known.join(", ");
    match nearest(&word.to_lowercase(), known.iter().copied()) {
        Some(near) => problem.with_hint(format!("did you mean `{near}`? known are {all}")),
        None => problem.with_hint(format!("known are {all}")),
    }
}

/// Shortens a word that is too long to read.
fn shortened(word: &str) -> String {
    match word.char_indices().nth(WORD_SHOWN_MAX_CHARS) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    }
}

fn quoted(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).collect()
}

/// Returns the parent of an error's path. The path is the value's own; at the root it is a dot, and behind an unknown field it may end in a
/// question mark.
fn parent(path: &str) -> String {
    path.trim_end_matches('?').trim_end_matches('.').to_owned()
}

fn child(path: &str, name: &str) -> String {
    let parent = parent(path);
    let known = parent == name || parent.ends_with(&format!(".{name}"));
    match (parent.is_empty(), known) {
        (true, _) => name.to_owned(),
        (false, true) => parent,
        (false, false) => format!("{parent}.{name}"),
    }
}

#[cfg(test)]
mod tests;
