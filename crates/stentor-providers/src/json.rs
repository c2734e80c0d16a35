//! Helpers for JSON values.

use serde_json::{Map, Value};
use stentor_core::error::Invalid;

/// Fails on keys outside the list.
pub(crate) fn only(map: &Map<String, Value>, known: &[&str], path: &str) -> Result<(), Invalid> {
    match map.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => {
            Err(Invalid::new(format!("{path}.{key}"), format!("unknown; known are {}", known.join(", "))))
        }
        None => Ok(()),
    }
}

/// Returns the optional object at `name`.
pub(crate) fn object<'a>(
    map: &'a Map<String, Value>,
    name: &str,
    path: &str,
) -> Result<Option<&'a Map<String, Value>>, Invalid> {
    match map.get(name) {
        None => Ok(None),
        Some(Value::Object(inner)) => Ok(Some(inner)),
        Some(_) => Err(Invalid::new(format!("{path}.{name}"), "must be an object")),
    }
}

/// Fails on values that are not strings.
pub(crate) fn strings(map: &Map<String, Value>, path: &str) -> Result<(), Invalid> {
    match map.iter().find(|(_, value)| !value.is_string()) {
        Some((key, _)) => Err(Invalid::new(format!("{path}.{key}"), "must be a string")),
        None => Ok(()),
    }
}

/// Merges `overrides` into `base`: objects are merged, everything else is replaced.
pub(crate) fn merge(base: &mut Map<String, Value>, overrides: &Map<String, Value>) {
    for (key, value) in overrides {
        match (base.get_mut(key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => merge(below, above),
            _ => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Turns `collapse_key` into `collapseKey`, as Google's JSON reader takes both.
pub(crate) fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut camel, part| {
        let mut chars = part.chars();
        camel.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        camel.push_str(chars.as_str());
        camel
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_merged_and_all_else_is_replaced() {
        let mut base = json!({"aps": {"badge": 1, "alert": {"title": "a"}}, "x": {"y": 1}});
        let overrides = json!({"aps": {"badge": 2, "sound": "s"}, "x": 3});
        merge(base.as_object_mut().expect("object"), overrides.as_object().expect("object"));
        assert_eq!(base, json!({"aps": {"badge": 2, "alert": {"title": "a"}, "sound": "s"}, "x": 3}));
    }

    #[test]
    fn snake_case_becomes_camel_case() {
        assert_eq!(camel_case("restricted_package_name"), "restrictedPackageName");
        assert_eq!(camel_case("collapseKey"), "collapseKey");
    }
}
