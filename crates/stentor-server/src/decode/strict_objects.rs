//! A JSON decoder that accepts only objects for structs.
//!
//! A whole number may be written in any way (`60.0`, `6e1`), as JSON Schema has it.
//!
//! Derived decoders also accept an array for a struct, with its values in order of the fields. A caller's mistake would pass, or be refused
//! with a puzzling message. This layer around any decoder refuses such an array at its place. serde has no switch for it, and decoding into
//! a tree first would cost a tree for each line of an import. Hence a wrapper for each trait of a decoder; most of their lines forward the
//! call.

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Unexpected, VariantAccess,
    Visitor,
};

/// A decoder, seed or access that requires objects for structs, at any depth.
pub(crate) struct StrictObjects<T>(pub(crate) T);

/// A visitor, and whether it reads a struct or a whole number.
struct StrictReader<V> {
    inner: V,
    of_struct: bool,
    of_integer: bool,
}

/// Floats hold every whole number up to here.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

fn any<V>(inner: V) -> StrictReader<V> {
    StrictReader { inner, of_struct: false, of_integer: false }
}

fn structure<V>(inner: V) -> StrictReader<V> {
    StrictReader { of_struct: true, ..any(inner) }
}

fn integer<V>(inner: V) -> StrictReader<V> {
    StrictReader { of_integer: true, ..any(inner) }
}

macro_rules! forward {
    ($as:ident: $($method:ident($($name:ident: $kind:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($name: $kind,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($name,)* $as(visitor))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for StrictObjects<D> {
    type Error = D::Error;

    forward! { integer:
        deserialize_i8(); deserialize_i16(); deserialize_i32(); deserialize_i64();
        deserialize_u8(); deserialize_u16(); deserialize_u32(); deserialize_u64();
    }

    forward! { any:
        deserialize_any(); deserialize_bool(); deserialize_f32(); deserialize_f64(); deserialize_char(); deserialize_str(); deserialize_string();
        deserialize_bytes(); deserialize_byte_buf(); deserialize_option(); deserialize_unit();
        deserialize_seq(); deserialize_map(); deserialize_identifier(); deserialize_ignored_any();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, structure(visitor))
    }
}

macro_rules! values {
    ($($method:ident($kind:ty);)*) => {$(
        fn $method<E: Error>(self, value: $kind) -> Result<V::Value, E> {
            self.inner.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for StrictReader<V> {
    type Value = V::Value;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.expecting(to)
    }

    values! {
        visit_bool(bool); visit_i64(i64); visit_u64(u64); visit_str(&str);
        visit_borrowed_str(&'de str); visit_string(String); visit_bytes(&[u8]);
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<V::Value, E> {
        if !self.of_integer || value.fract() != 0.0 || value.abs() > WHOLE_MAX {
            return self.inner.visit_f64(value);
        }
        if value < 0.0 { self.inner.visit_i64(value as i64) } else { self.inner.visit_u64(value as u64) }
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, given: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(StrictObjects(given))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, given: D) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(StrictObjects(given))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, given: A) -> Result<V::Value, A::Error> {
        if self.of_struct {
            return Err(A::Error::invalid_type(Unexpected::Seq, &"an object"));
        }
        self.inner.visit_seq(StrictObjects(given))
    }

    fn visit_map<A: MapAccess<'de>>(self, given: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(StrictObjects(given))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, given: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(StrictObjects(given))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for StrictObjects<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, given: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(StrictObjects(given))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for StrictObjects<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(StrictObjects(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for StrictObjects<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(StrictObjects(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(StrictObjects(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for StrictObjects<A> {
    type Error = A::Error;
    type Variant = StrictObjects<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let (value, variant) = self.0.variant_seed(StrictObjects(seed))?;
        Ok((value, StrictObjects(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for StrictObjects<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(StrictObjects(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, any(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, structure(visitor))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::Value;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Outer {
        inner: Option<Inner>,
        list: Vec<Inner>,
        by_name: BTreeMap<String, Inner>,
        choice: Choice,
        anything: Value,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Inner {
        number: u8,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Choice {
        Nothing,
        One(Inner),
        Named { number: u8 },
        Pair(u8, u8),
    }

    fn read(text: &str) -> Result<Outer, String> {
        let mut reader = serde_json::Deserializer::from_str(text);
        serde_path_to_error::deserialize(StrictObjects(&mut reader)).map_err(|error| error.to_string())
    }

    fn outer(field: &str, value: &str) -> String {
        let mut all = BTreeMap::from([
            ("inner", "{\"number\": 1}"),
            ("list", "[{\"number\": 2}]"),
            ("by_name", "{\"a\": {\"number\": 3}}"),
            ("choice", "\"nothing\""),
            ("anything", "[1, [2], {\"x\": [3]}]"),
        ]);
        all.insert(field, value);
        let fields: Vec<_> = all.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
        format!("{{{}}}", fields.join(","))
    }

    #[test]
    fn what_is_an_object_is_read_as_before() {
        for choice in [
            "\"nothing\"",
            "{\"one\": {\"number\": 1}}",
            "{\"named\": {\"number\": 1}}",
            "{\"pair\": [1, 2]}",
        ] {
            let text = outer("choice", choice);
            assert_eq!(read(&text), serde_json::from_str(&text).map_err(|error| error.to_string()), "{text}");
        }
        assert!(read(&outer("inner", "null")).is_ok_and(|outer| outer.inner.is_none()));
    }

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        for whole in ["1", "1.0", "10e-1", "0.1e1"] {
            let read = read(&outer("inner", &format!("{{\"number\": {whole}}}")));
            assert_eq!(read.expect(whole).inner, Some(Inner { number: 1 }));
        }
        for wrong in ["1.5", "-1.0", "256.0", "1e300", "\"1\""] {
            assert!(read(&outer("inner", &format!("{{\"number\": {wrong}}}"))).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_array_in_place_of_an_object_is_refused_with_its_path() {
        let cases = [
            ("inner", "[1]", "inner"),
            ("list", "[{\"number\": 1}, [1]]", "list[1]"),
            ("by_name", "{\"a\": [1]}", "by_name.a"),
            ("choice", "{\"one\": [1]}", "choice.one"),
            ("choice", "{\"named\": [1]}", "choice.named"),
        ];
        for (field, value, path) in cases {
            let refused = read(&outer(field, value)).expect_err("an array");
            assert!(refused.starts_with(&format!("{path}: ")), "{refused}");
            assert!(refused.contains("sequence, expected an object"), "{refused}");
        }
    }
}
