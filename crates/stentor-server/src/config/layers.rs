//! The layers of the configuration, each refused when it names a setting that does not exist.

use std::collections::BTreeMap;
use std::path::Path;

use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};

use super::{ConfigError, DEFAULT_TOML, engines};
use crate::decode::errors::nearest;

const PREFIX: &str = "STENTOR__";
const FILE_SUFFIX: &str = "_FILE";
/// Name of the first layer.
pub(super) const DEFAULT_LAYER: &str = "default";

/// Stacks the layers.
pub(super) fn figment(
    path: Option<&Path>,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Figment, ConfigError> {
    let known = known_settings();
    let mut problems = Vec::new();
    let mut figment = Figment::from(Layer::new(DEFAULT_LAYER, defaults()));
    if let Some(path) = path {
        let layer = file_layer(path)?;
        problems.extend(unknown_settings(&layer, &known));
        figment = figment.merge(layer);
    }
    for layer in variable_layers(variables, &known, &mut problems) {
        figment = figment.merge(layer);
    }
    if problems.is_empty() { Ok(figment) } else { Err(ConfigError { problems }) }
}

/// Lists every setting as `section.key`, with its default.
pub(super) fn known_settings() -> BTreeMap<String, Value> {
    let mut known = BTreeMap::new();
    flatten("", &defaults(), &mut known);
    known
}

/// Rewords figment's errors about unsuitable values.
pub(super) fn reworded(error: figment::Error) -> ConfigError {
    let problems = error.into_iter().map(|one| {
        let place = one.metadata.as_ref().map(|layer| format!(" (from {})", layer.name)).unwrap_or_default();
        format!("{}: {}{place}", one.path.join("."), one.kind)
    });
    ConfigError { problems: problems.collect() }
}

/// One layer: a name that explains where its values come from, and the values.
struct Layer {
    name: String,
    values: Dict,
}

impl Layer {
    fn new(name: impl Into<String>, values: Dict) -> Self {
        Self { name: name.into(), values }
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.values.clone()))
    }
}

fn defaults() -> Dict {
    toml::from_str(DEFAULT_TOML).unwrap_or_default()
}

/// The byte order mark that some editors put before a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

fn file_layer(path: &Path) -> Result<Layer, ConfigError> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| ConfigError::one(format!("{name} cannot be read: {error}")))?;
    let mut values = toml::from_str(text.trim_start_matches(BYTE_ORDER_MARK))
        .map_err(|error| ConfigError::one(format!("{name} is not TOML: {}", error.to_string().trim_end())))?;
    engines::expand(&mut values);
    Ok(Layer::new(format!("{name}"), values))
}

fn unknown_settings(layer: &Layer, known: &BTreeMap<String, Value>) -> Vec<String> {
    let mut found = BTreeMap::new();
    flatten("", &layer.values, &mut found);
    let unknown = found.keys().filter(|key| !known.contains_key(*key));
    unknown.map(|key| unknown_sentence(&layer.name, key, key, known)).collect()
}

fn unknown_sentence(layer: &str, written: &str, key: &str, known: &BTreeMap<String, Value>) -> String {
    match nearest(key, known.keys().map(String::as_str)) {
        Some(near) => format!("{layer}: there is no setting `{written}`; did you mean `{near}`?"),
        None => format!("{layer}: there is no setting `{written}`; `stentor config default` lists all"),
    }
}

fn flatten(prefix: &str, values: &Dict, into: &mut BTreeMap<String, Value>) {
    for (key, value) in values {
        let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::Dict(_, inner) => flatten(&key, inner, into),
            leaf => {
                into.insert(key, leaf.clone());
            }
        }
    }
}

fn variable_layers(
    variables: impl IntoIterator<Item = (String, String)>,
    known: &BTreeMap<String, Value>,
    problems: &mut Vec<String>,
) -> Vec<Layer> {
    let ours = variables.into_iter().filter(|(name, _)| name.starts_with(PREFIX));
    let read = ours.filter_map(|(name, text)| match variable_layer(&name, text, known) {
        Ok(layer) => Some(layer),
        Err(problem) => {
            problems.push(problem);
            None
        }
    });
    read.collect()
}

fn variable_layer(name: &str, text: String, known: &BTreeMap<String, Value>) -> Result<Layer, String> {
    let key = setting_of(name);
    if engines::is_section(&key) {
        return Ok(Layer::new(name, engine_settings(key, text)));
    }
    if let Some(default) = known.get(&key) {
        return Ok(Layer::new(name, nested(&key, typed(&text, default))));
    }
    let unknown = || unknown_sentence("environment", name, &key, known);
    let file_key = name.strip_suffix(FILE_SUFFIX).map(setting_of).ok_or_else(unknown)?;
    let default = known.get(&file_key);
    if default.is_none() && !engines::is_section(&file_key) {
        return Err(unknown());
    }
    let content =
        std::fs::read_to_string(&text).map_err(|error| format!("{name}: {text} cannot be read: {error}"))?;
    let content = content.trim_start_matches(BYTE_ORDER_MARK).trim();
    let values = match default {
        Some(default) => nested(&file_key, typed(content, default)),
        None => engine_settings(file_key, content.to_owned()),
    };
    Ok(Layer::new(name, values))
}

/// Returns the section for which a variable has the short form.
fn engine_settings(section: String, text: String) -> Dict {
    let mut values = Dict::from([(section, Value::from(text))]);
    engines::expand(&mut values);
    values
}

fn setting_of(variable: &str) -> String {
    variable.trim_start_matches(PREFIX).to_ascii_lowercase().replace("__", ".")
}

/// Converts a variable's text to the type of the setting's default. If the default is not a text, the text is parsed as a TOML value; a
/// list may omit its brackets and quotes.
fn typed(text: &str, default: &Value) -> Value {
    if matches!(default, Value::Array(..)) && !text.trim_start().starts_with('[') {
        let parts = text.split([',', ' ']).filter(|part| !part.is_empty());
        return Value::from(parts.collect::<Vec<_>>());
    }
    if matches!(default, Value::String(..)) {
        return Value::from(text);
    }
    read_value(text).unwrap_or_else(|| Value::from(text))
}

/// Parses a text as the value of one TOML line; `None` for a text of several lines.
fn read_value(text: &str) -> Option<Value> {
    let mut values: Dict = toml::from_str(&format!("value = {text}")).ok()?;
    let value = values.remove("value")?;
    values.is_empty().then_some(value)
}

fn nested(key: &str, value: Value) -> Dict {
    let mut parts = key.rsplit('.');
    let last = parts.next().unwrap_or_default();
    let mut dict = Dict::from([(last.to_owned(), value)]);
    for part in parts {
        dict = Dict::from([(part.to_owned(), Value::from(dict))]);
    }
    dict
}
