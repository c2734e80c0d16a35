//! Turns what a decoder says into what a caller can use: the field, the problem, the nearest right name.

use crate::service::{ErrorCode, Problem};

/// A name this close to a known one was probably meant to be it.
const NEAR_SCORE: f64 = 0.75;

/// Words a JSON error, found at `path`.
pub(crate) fn of_json(path: &str, error: &serde_json::Error) -> Problem {
    if error.classify() == serde_json::error::Category::Data {
        return of_text(path, &error.to_string());
    }
    let detail = format!("the JSON cannot be read: {error}");
    Problem::new(ErrorCode::InvalidRequest, detail)
}

/// Words a decoder's message about the value at `path`.
pub(crate) fn of_text(path: &str, message: &str) -> Problem {
    let message = message.rsplit_once(" at line ").map_or(message, |(sentence, _)| sentence);
    let names = quoted(message);
    if message.starts_with("unknown field") {
        return unknown(&child(path, names.first().copied().unwrap_or_default()), "unknown field", &names);
    }
    if message.starts_with("unknown variant") {
        return unknown(&parent(path), "unknown value", &names);
    }
    if message.starts_with("missing field") {
        return Problem::field(
            child(&parent(path), names.first().copied().unwrap_or_default()),
            "is missing",
        );
    }
    if message.starts_with("duplicate field") {
        return Problem::field(
            child(&parent(path), names.first().copied().unwrap_or_default()),
            "is there twice",
        );
    }
    let field = parent(path);
    let own = field.rsplit('.').next().unwrap_or_default();
    let sentence =
        message.split_once(": ").filter(|(word, _)| *word == own).map_or(message, |(_, rest)| rest);
    Problem::field(field, sentence.to_owned())
}

/// Finds the known name that is nearest to a wrong one, if any is near.
pub(crate) fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|name| (strsim::jaro_winkler(wrong, name), name));
    let best = scored.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (best.0 >= NEAR_SCORE).then_some(best.1)
}

fn unknown(field: &str, what: &str, names: &[&str]) -> Problem {
    let (wrong, known) = names.split_first().map_or(("", [].as_slice()), |(wrong, known)| (*wrong, known));
    let problem = Problem::field(field, format!("{what} `{wrong}`"));
    match nearest(wrong, known.iter().copied()) {
        Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
        None if known.is_empty() => problem,
        None => problem.with_hint(format!("known are {}", known.join(", "))),
    }
}

fn quoted(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).collect()
}

/// The path of an error is the value's own; at the root it is a dot, behind an unknown field it may be a question mark.
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
