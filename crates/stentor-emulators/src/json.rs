//! JSON as the push services read it: borrowed from the body, and of two equal keys the last one wins.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::borrow::Cow;
use std::fmt;

/// A value; depth is limited by the parser.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum JsonNode<'a> {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(Cow<'a, str>),
    List(Vec<JsonNode<'a>>),
    Object(Vec<(Cow<'a, str>, JsonNode<'a>)>),
}

impl<'a> JsonNode<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Counts the bytes that it takes as JSON.
    pub(crate) fn json_bytes(&self) -> usize {
        let quoted = |text: &str| serde_json::Value::from(text).to_string().len();
        // Between two brackets, with a comma between each two.
        let around = |count: usize| 2 + count.saturating_sub(1);
        match self {
            Self::Null => "null".len(),
            Self::Bool(value) => value.to_string().len(),
            Self::Number(value) => value.to_string().len(),
            Self::Text(value) => quoted(value),
            Self::List(nodes) => around(nodes.len()) + nodes.iter().map(Self::json_bytes).sum::<usize>(),
            Self::Object(entries) => {
                let bytes = entries.iter().map(|(key, node)| quoted(key) + ":".len() + node.json_bytes());
                around(entries.len()) + bytes.sum::<usize>()
            }
        }
    }

    pub(crate) fn entries(&self) -> Option<&[(Cow<'a, str>, JsonNode<'a>)]> {
        match self {
            Self::Object(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns a field by its exact name; of two equal names the last wins, and null counts as absent.
    pub(crate) fn exact(&self, name: &str) -> Option<&Self> {
        let mut entries = self.entries()?.iter().rev();
        entries.find(|(key, _)| key == name).map(|(_, node)| node).filter(|node| **node != JsonNode::Null)
    }

    /// Returns a field by its lowerCamelCase name, which may also be written in snake_case; null counts as absent.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        let entries = self.entries()?.iter().rev();
        entries
            .filter(|(key, value)| is_name(key, name) && *value != JsonNode::Null)
            .map(|(_, value)| value)
            .next()
    }
}

/// Returns true if a key is this lowerCamelCase name, as it is or in snake_case.
pub(crate) fn is_name(key: &str, name: &str) -> bool {
    key == name || (key.contains('_') && is_snake_case(key, name))
}

fn is_snake_case(key: &str, name: &str) -> bool {
    let mut key = key.bytes();
    for expected in name.bytes() {
        let ok = if expected.is_ascii_uppercase() {
            key.next() == Some(b'_') && key.next() == Some(expected.to_ascii_lowercase())
        } else {
            key.next() == Some(expected)
        };
        if !ok {
            return false;
        }
    }
    key.next().is_none()
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonNode<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = JsonNode<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(JsonNode::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(JsonNode::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(JsonNode::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(JsonNode::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(serde_json::Number::from_f64(value).map_or(JsonNode::Null, JsonNode::Number))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(JsonNode::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(JsonNode::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element()? {
            nodes.push(node);
        }
        Ok(JsonNode::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(JsonNode::Text(key)) = map.next_key()? {
            entries.push((key, map.next_value()?));
        }
        Ok(JsonNode::Object(entries))
    }
}

impl Serialize for JsonNode<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(value) => value.serialize(serializer),
            Self::Text(value) => serializer.serialize_str(value),
            Self::List(nodes) => serializer.collect_seq(nodes),
            Self::Object(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, node) in entries {
                    map.serialize_entry(key, node)?;
                }
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_as_they_are_written() {
        for text in [
            "null",
            "true",
            "[]",
            "{}",
            "[1]",
            "[-1.5,1e300,5e-324,18446744073709551615]",
            r#"{"a":1,"a":{"b":[null,false]},"c":"\u0001\"ä\n"}"#,
            r#"["\ud83d\ude00"]"#,
        ] {
            let node = JsonNode::parse(text.as_bytes()).expect(text);
            let written = serde_json::to_string(&node).expect(text);
            assert_eq!(node.json_bytes(), written.len(), "{written}");
        }
    }
}
