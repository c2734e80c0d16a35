//! The short form of an engine: its address or its name, `store = "postgres://…"`, in place of a section.

use figment::value::{Dict, Value};

/// Sections that choose an engine.
const SECTIONS: [&str; 2] = ["store", "queue"];

/// Whether the short form may stand for the section.
pub(super) fn is_section(key: &str) -> bool {
    SECTIONS.contains(&key)
}

/// Puts the section in the place of each short form. What names no engine is refused later, like any other value of `engine`.
pub(super) fn expand(values: &mut Dict) {
    for section in SECTIONS {
        let Some(Value::String(tag, text)) = values.get(section) else { continue };
        let (engine, url) = engine_and_url(text);
        let settings = [("engine", engine), ("url", url)];
        // The tag names the layer, for whoever asks where a value comes from.
        let settings = settings.map(|(key, value)| (key.to_owned(), Value::String(*tag, value.to_owned())));
        values.insert(section.to_owned(), Value::Dict(*tag, Dict::from(settings)));
    }
}

/// Returns both settings; the name of an engine has no address, which undoes that of an earlier layer.
fn engine_and_url(text: &str) -> (&str, &str) {
    match text.split_once("://") {
        Some(("postgres" | "postgresql", _)) => ("postgres", text),
        Some(("nats" | "tls", _)) => ("nats", text),
        // The address is a secret: only its scheme may stand in a refusal.
        Some((scheme, _)) => (scheme, ""),
        None => (text, ""),
    }
}
