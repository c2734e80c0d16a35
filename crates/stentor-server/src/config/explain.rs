//! What every setting is and where it comes from.

use std::path::Path;

use figment::Figment;
use figment::value::Value;

use super::layers::{self, DEFAULT_LAYER};
use super::{ConfigError, environment};

/// Settings whose value is never shown.
const SECRETS: &[&str] = &["api.root_key", "secrets.key", "store.url", "queue.url"];

/// One setting, its value, and the layer that it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// `section.key`.
    pub key: String,
    /// As TOML would write it; secrets as `[redacted]`.
    pub value: String,
    /// `default`, the file's path, or the variable's name.
    pub origin: String,
}

/// Lists every setting in force, in order of name.
pub fn explain(path: Option<&Path>) -> Result<Vec<Explained>, ConfigError> {
    explain_with(path, environment())
}

/// Lists every setting in force with the given variables instead of the process' environment.
pub fn explain_with(
    path: Option<&Path>,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Vec<Explained>, ConfigError> {
    let figment = layers::figment(path, variables)?;
    Ok(layers::known_settings().into_keys().map(|key| explained(&figment, key)).collect())
}

fn explained(figment: &Figment, key: String) -> Explained {
    let layer = figment.find_metadata(&key).map(|layer| layer.name.to_string());
    let value = figment.find_value(&key).map(|value| shown(&key, &value)).unwrap_or_default();
    Explained { value, origin: layer.unwrap_or_else(|| DEFAULT_LAYER.to_owned()), key }
}

fn shown(key: &str, value: &Value) -> String {
    let text = written(value);
    if SECRETS.contains(&key) && text != "\"\"" { "[redacted]".to_owned() } else { text }
}

/// Writes a value as TOML does.
fn written(value: &Value) -> String {
    match value {
        Value::String(_, text) => format!("\"{text}\""),
        Value::Bool(_, flag) => flag.to_string(),
        Value::Num(_, number) => number.to_i128().map_or_else(
            || number.to_u128().map_or_else(|| format!("{:?}", number.to_f64()), |whole| whole.to_string()),
            |whole| whole.to_string(),
        ),
        Value::Array(_, parts) => format!("[{}]", parts.iter().map(written).collect::<Vec<_>>().join(", ")),
        other => format!("{other:?}"),
    }
}
