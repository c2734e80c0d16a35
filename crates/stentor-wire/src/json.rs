//! JSON: content of the declared form, and values of any shape.

mod lost;

pub use lost::{LostNumber, lost_number, numbers_as_texts};

use crate::limits::Budget;
use crate::{Content, DocumentLimits, Value, WireError};
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use std::cell::RefCell;
use std::fmt;

/// Reads content.
pub fn read_content(bytes: &[u8], limits: &DocumentLimits) -> Result<Content, WireError> {
    limits.check_size(bytes.len())?;
    let content: Content = serde_json::from_slice(bytes).map_err(malformed)?;
    if content.entries() > limits.nodes_max {
        return Err(WireError::TooMany { what: "nodes", max: limits.nodes_max });
    }
    Ok(content)
}

/// Writes content.
pub fn write_content(content: &Content) -> Result<Vec<u8>, WireError> {
    let infinite = |item: &crate::Item| !item.price.is_finite();
    if matches!(content, Content::Objects(items) if items.iter().any(infinite)) {
        return Err(WireError::Unrepresentable("an infinite number"));
    }
    serde_json::to_vec(content).map_err(malformed)
}

/// Reads a value; a duplicate name in one object is refused.
pub fn read(bytes: &[u8], limits: &DocumentLimits) -> Result<Value, WireError> {
    limits.check_size(bytes.len())?;
    let budget = RefCell::new(limits.budget());
    let refusal = RefCell::new(None);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let read = Seed { budget: &budget, refusal: &refusal }.deserialize(&mut reader);
    let read = read.and_then(|value| reader.end().map(|()| value));
    read.map_err(|error| refusal.take().unwrap_or_else(|| malformed(error)))
}

/// Writes a value.
pub fn write(value: &Value) -> Result<Vec<u8>, WireError> {
    serde_json::to_vec(value).map_err(|_| WireError::Unrepresentable("an infinite number"))
}

fn malformed(error: serde_json::Error) -> WireError {
    // The library's messages quote names; ours stay short.
    WireError::Malformed(error.to_string().chars().take(160).collect())
}

/// Reads a value within the remaining budget of depth and nodes. Keeps a refusal of ours as a typed error beside the library's.
#[derive(Clone, Copy)]
struct Seed<'a> {
    budget: &'a RefCell<Budget>,
    refusal: &'a RefCell<Option<WireError>>,
}

impl Seed<'_> {
    fn refused<E: Error>(self, error: WireError) -> E {
        let sentence = E::custom(&error);
        self.refusal.replace(Some(error));
        sentence
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        let entered = self.budget.borrow_mut().enter();
        entered.map_err(|error| self.refused(error))?;
        let value = reader.deserialize_any(self);
        self.budget.borrow_mut().leave();
        value
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Int(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        i64::try_from(number)
            .map(Value::Int)
            .map_err(|_| self.refused(WireError::number(&number.to_string())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Double(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Vec::new();
        let mut names = std::collections::BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if !names.insert(name.clone()) {
                return Err(A::Error::custom("a name stands twice in one object"));
            }
            fields.push((name, map.next_value_seed(self)?));
        }
        Ok(Value::Record(fields))
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Nil => writer.serialize_unit(),
            Self::Bool(flag) => writer.serialize_bool(*flag),
            Self::Int(number) => writer.serialize_i64(*number),
            Self::Double(number) if number.is_finite() => writer.serialize_f64(*number),
            Self::Double(_) => Err(serde::ser::Error::custom("an infinite number")),
            Self::Text(text) | Self::DateTime(text) => writer.serialize_str(text),
            Self::Bytes(bytes) => writer.serialize_str(&crate::xmlrpc::base64(bytes)),
            Self::List(values) => {
                let mut list = writer.serialize_seq(Some(values.len()))?;
                values.iter().try_for_each(|value| list.serialize_element(value))?;
                list.end()
            }
            Self::Record(fields) => {
                let mut map = writer.serialize_map(Some(fields.len()))?;
                fields.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
                map.end()
            }
        }
    }
}
