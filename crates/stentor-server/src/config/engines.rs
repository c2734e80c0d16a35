//! The short form of an engine: its address or its name, `store = "postgres://…"`, in place of a section.

use figment::value::{Dict, Value};

/// Sections that choose an engine.
const SECTIONS: [&str; 2] = ["store", "queue"];

/// Returns true if the section has a short form.
pub(super) fn is_section(key: &str) -> bool {
    SECTIONS.contains(&key)
}

/// Replaces each short form by its section. A text that names no engine is refused later, like any other bad value of `engine`.
pub(super) fn expand(values: &mut Dict) {
    for section in SECTIONS {
        let Some(Value::String(tag, text)) = values.get(section) else { continue };
        let (engine, url) = engine_and_url(text);
        let settings = [("engine", engine), ("url", url)];
        // The tag names the layer, so that `explain` can show the origin of the value.
        let settings = settings.map(|(key, value)| (key.to_owned(), Value::String(*tag, value.to_owned())));
        values.insert(section.to_owned(), Value::Dict(*tag, Dict::from(settings)));
    }
}

/// Returns the engine and the address. The name of an engine comes with an empty address, which overrides an address of an earlier layer.
fn engine_and_url(text: &str) -> (&str, &str) {
    match text.split_once("://") {
        Some(("postgres" | "postgresql", _)) => ("postgres", text),
        Some(("nats" | "tls", _)) => ("nats", text),
        // The address is a secret: only its scheme may stand in a refusal.
        Some((scheme, _)) => (scheme, ""),
        None => (text, ""),
    }
}
