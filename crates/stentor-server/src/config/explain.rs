//! A listing of all settings with their meaning and origin.

use std::collections::BTreeMap;
use std::path::Path;

use figment::Figment;
use figment::value::Value;

use super::layers::{self, DEFAULT_LAYER};
use super::{ConfigError, DEFAULT_TOML, environment};

/// Settings with redacted values.
const SECRETS: &[&str] =
    &["api.root_key", "console.oidc.client_secret", "secrets.key", "store.url", "queue.url"];

/// One setting, its value, and the layer that it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// `section.key`.
    pub key: String,
    /// As TOML would write it; secrets as `[redacted]`.
    pub value: String,
    /// `default`, the file's path, or the variable's name.
    pub origin: String,
    /// The default, as TOML writes it.
    pub default: String,
    /// The meaning, as the default configuration has it.
    pub about: String,
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
    Ok(listed(&layers::figment(path, variables)?))
}

/// Lists every setting of the layers, in order of name.
pub(super) fn listed(figment: &Figment) -> Vec<Explained> {
    let mut about = comments(DEFAULT_TOML);
    let explained = |(key, default): (String, Value)| {
        let about = about.remove(&key).unwrap_or_default();
        explained(figment, key, written(&default), about)
    };
    layers::known_settings().into_iter().map(explained).collect()
}

/// Reads the comment above each setting of a file, by `section.key`. A comment applies to all settings below it, up to the next comment.
fn comments(toml: &str) -> BTreeMap<String, String> {
    let (mut found, mut section, mut above) = (BTreeMap::new(), String::new(), Vec::new());
    let mut is_read = false;
    for line in toml.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix('#') {
            if std::mem::take(&mut is_read) {
                above.clear();
            }
            above.push(comment.trim());
        } else if let Some((key, _)) = line.split_once('=') {
            found.insert(format!("{section}{}", key.trim()), above.join("\n"));
            is_read = true;
        } else {
            above.clear();
            if let Some(name) = line.strip_prefix('[') {
                section = format!("{}.", name.trim_end_matches(']'));
            }
        }
    }
    found
}

fn explained(figment: &Figment, key: String, default: String, about: String) -> Explained {
    let layer = figment.find_metadata(&key).map(|layer| layer.name.to_string());
    let value = figment.find_value(&key).map(|value| shown(&key, &value)).unwrap_or_default();
    Explained { value, origin: layer.unwrap_or_else(|| DEFAULT_LAYER.to_owned()), key, default, about }
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
