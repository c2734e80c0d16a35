//! Fields of a message that belong to a single push service, under the name that its adapter gives them.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use stentor_core::device::ProviderKind;
use stentor_core::error::Invalid;
use stentor_providers::Descriptor;

/// Fields that a push service gets unchanged, by provider.
pub(crate) type OverridesByProvider = BTreeMap<ProviderKind, Map<String, Value>>;

/// Returns overrides under their field names in the API.
pub(super) fn by_field(overrides: OverridesByProvider) -> BTreeMap<String, Map<String, Value>> {
    let field = |kind| stentor_providers::descriptor(kind).override_field();
    overrides.into_iter().filter_map(|(kind, fields)| Some((field(kind)?.to_owned(), fields))).collect()
}

/// A deserializer for a request with overrides beside its own fields; it collects the overrides separately.
pub(super) struct WithOverrides<'a, D> {
    pub(super) request: D,
    pub(super) found: &'a mut OverridesByProvider,
}

/// Renames the field of a problem in an override to its name in the API.
pub(crate) fn named_override(invalid: Invalid) -> Invalid {
    let Some(path) = invalid.field.strip_prefix("overrides.") else { return invalid };
    let (kind, rest) = path.split_once('.').map_or((path, None), |(kind, rest)| (kind, Some(rest)));
    let known = stentor_providers::all().find(|adapter| adapter.kind.as_str() == kind);
    let field = known.and_then(Descriptor::override_field).unwrap_or(kind);
    let field = rest.map_or(field.to_owned(), |rest| format!("{field}.{rest}"));
    Invalid { field, ..invalid }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for WithOverrides<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.request.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let Self { request, found } = self;
        request.deserialize_struct(name, fields, Sorter { visitor, fields, found })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// A visitor or map access that hides overrides from the request's own decoder.
struct Sorter<'a, T> {
    visitor: T,
    fields: &'static [&'static str],
    found: &'a mut OverridesByProvider,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Sorter<'_, V> {
    type Value = V::Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(to)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        let Self { visitor, fields, found } = self;
        visitor.visit_map(Sorter { visitor: map, fields, found })
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Sorter<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        while let Some(name) = self.visitor.next_key::<String>()? {
            let Some((kind, field)) = override_of(&name) else {
                if !self.fields.contains(&name.as_str()) {
                    return Err(A::Error::custom(unknown(&name, self.fields)));
                }
                return seed.deserialize(name.into_deserializer()).map(Some);
            };
            let given: Option<Map<String, Value>> = self.visitor.next_value()?;
            let before = given.and_then(|given| self.found.insert(kind, given));
            if before.is_some() {
                return Err(A::Error::duplicate_field(field));
            }
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.visitor.next_value_seed(seed)
    }
}

fn override_of(name: &str) -> Option<(ProviderKind, &'static str)> {
    let named = |adapter: &Descriptor| Some((adapter.kind, adapter.override_field()?));
    stentor_providers::all().filter_map(named).find(|(_, field)| *field == name)
}

/// Returns the error text for an unknown field. As in derived decoders, it lists the expected fields, here with the overrides.
fn unknown(name: &str, fields: &[&'static str]) -> String {
    let overrides = stentor_providers::all().filter_map(Descriptor::override_field);
    let known: Vec<_> = fields.iter().copied().chain(overrides).collect();
    format!("unknown field `{name}`, expected one of `{}`", known.join("`, `"))
}
