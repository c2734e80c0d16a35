//! Reads a credential's JSON field by field, as a derived decoder would.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::{CredentialField, CredentialFieldKind, CredentialSchema};

impl<'de> DeserializeSeed<'de> for &CredentialSchema {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_struct("Credential", &[], self)
    }
}

impl<'de> Visitor<'de> for &CredentialSchema {
    type Value = Map<String, Value>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "the fields of {}", self.name)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut read, mut named) = (Map::new(), Vec::new());
        while let Some(name) = map.next_key::<String>()? {
            let Some(field) = self.fields.iter().find(|field| field.name == name) else {
                return Err(A::Error::custom(self.unknown(&name)));
            };
            if named.contains(&field.name) {
                return Err(A::Error::duplicate_field(field.name));
            }
            named.push(field.name);
            read.extend(map.next_value_seed(field)?.map(|value| (name, value)));
        }
        match self.fields.iter().find(|field| field.is_required && !named.contains(&field.name)) {
            Some(missing) => Err(A::Error::missing_field(missing.name)),
            None => Ok(read),
        }
    }
}

impl<'de> DeserializeSeed<'de> for &CredentialField {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<Value>, D::Error> {
        match self.kind {
            CredentialFieldKind::Object(_) => self.read::<Map<String, Value>, D>(from),
            CredentialFieldKind::Quota => self.read::<Value, D>(from),
            CredentialFieldKind::Connections => self.read::<u32, D>(from),
            CredentialFieldKind::Flag => self.read::<bool, D>(from),
            CredentialFieldKind::Text
            | CredentialFieldKind::Pem
            | CredentialFieldKind::Endpoint
            | CredentialFieldKind::Url
            | CredentialFieldKind::Form(_)
            | CredentialFieldKind::Choice(_) => self.read::<String, D>(from),
        }
    }
}

impl CredentialField {
    /// Reads a value; only an optional field may be `null`.
    fn read<'de, T: Deserialize<'de> + Into<Value>, D: Deserializer<'de>>(
        &self,
        from: D,
    ) -> Result<Option<Value>, D::Error> {
        let value = if self.is_required { Some(T::deserialize(from)?) } else { Option::deserialize(from)? };
        Ok(value.map(Into::into))
    }
}

impl CredentialSchema {
    fn unknown(&self, name: &str) -> String {
        let known: Vec<_> = self.fields.iter().map(|field| format!("`{}`", field.name)).collect();
        match known.as_slice() {
            [] => format!("unknown field `{name}`, there are no fields"),
            _ => format!("unknown field `{name}`, expected one of {}", known.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use stentor_core::device::ProviderKind;

    use super::*;
    use crate::descriptor;

    fn read(kind: ProviderKind, text: &str) -> Result<Map<String, Value>, String> {
        let mut reader = serde_json::Deserializer::from_str(text);
        descriptor(kind).credential.deserialize(&mut reader).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_absent_or_null_is_left_out_and_all_else_is_kept() {
        let text =
            r#"{"service_account": {"type": "x"}, "endpoint": null, "quota": "none", "max_connections": 2}"#;
        let stored = r#"{"service_account": {"type": "x"}, "quota": "none", "max_connections": 2}"#;
        let stored: Value = serde_json::from_str(stored).expect("JSON");
        assert_eq!(read(ProviderKind::Fcm, text).map(Value::from), Ok(stored));
        assert_eq!(read(ProviderKind::Null, "{}"), Ok(Map::new()));
    }

    #[test]
    fn a_wrong_field_is_named() {
        for (kind, text, words) in [
            (ProviderKind::Fcm, "{}", "missing field `service_account`"),
            (ProviderKind::Fcm, r#"{"service_account": null}"#, "invalid type: null, expected a map"),
            (ProviderKind::Apns, r#"{"key_p8": 5}"#, "invalid type: integer `5`, expected a string"),
            (ProviderKind::Apns, r#"{"quota": 1, "quota": 2}"#, "duplicate field `quota`"),
            (ProviderKind::Apns, r#"{"max_connections": -1}"#, "invalid value: integer `-1`, expected u32"),
            (ProviderKind::Apns, r#"{"bundle": "x"}"#, "unknown field `bundle`, expected one of `key_p8`"),
            (ProviderKind::Null, r#"{"quota": 1}"#, "unknown field `quota`, there are no fields"),
        ] {
            let refused = read(kind, text).expect_err(text);
            assert!(refused.starts_with(words), "{refused}");
        }
    }
}
