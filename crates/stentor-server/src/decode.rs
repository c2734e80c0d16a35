//! Reads requests that are JSON: objects only, each problem with the path of the field.

pub(crate) mod errors;
mod strict_objects;

use std::marker::PhantomData;

use serde::de::{DeserializeOwned, DeserializeSeed};
use serde_json::{Map, Value};
use serde_path_to_error::Track;

use crate::contract::{ErrorCode, Problem, ServiceResult};

pub(crate) use strict_objects::StrictObjects;

/// Reads a JSON object; a problem names the field.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> ServiceResult<T> {
    decode_with(PhantomData::<T>, bytes)
}

/// Reads a JSON object with what `seed` knows; a problem names the field.
pub(crate) fn decode_with<'de, S: DeserializeSeed<'de> + Copy>(
    seed: S,
    bytes: &'de [u8],
) -> ServiceResult<S::Value> {
    let first = bytes.trim_ascii_start().first();
    if matches!(first, Some(b'[' | b'"' | b'0'..=b'9' | b'-' | b't' | b'f' | b'n')) {
        return Err(Problem::new(ErrorCode::InvalidRequest, "the body must be a JSON object"));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = seed.deserialize(StrictObjects(&mut reader)).map_err(|error| explain(seed, bytes, &error))?;
    let end = reader.end();
    end.map_err(|error| errors::of_json("", &error))?;
    Ok(value)
}

/// Reads a record that is decoded already; a problem names the field.
pub(crate) fn decode_value<T: DeserializeOwned>(record: Map<String, Value>) -> ServiceResult<T> {
    let mut track = Track::new();
    let from = StrictObjects(Value::Object(record));
    let read = T::deserialize(serde_path_to_error::Deserializer::new(from, &mut track));
    read.map_err(|error| errors::of_json(&track.path().to_string(), &error))
}

/// Reads what is wrong once more, slowly, to name the field.
fn explain<'de, S: DeserializeSeed<'de>>(seed: S, bytes: &'de [u8], error: &serde_json::Error) -> Problem {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let mut track = Track::new();
    match seed.deserialize(serde_path_to_error::Deserializer::new(StrictObjects(&mut reader), &mut track)) {
        Err(found) => errors::of_json(&track.path().to_string(), &found),
        Ok(_) => errors::of_json("", error),
    }
}
