//! Decoding of JSON requests: objects only, each problem with the path of the field.

pub(crate) mod errors;
mod strict_objects;

use std::marker::PhantomData;

use serde::de::{DeserializeOwned, DeserializeSeed};
use serde_json::{Map, Value};
use serde_path_to_error::Track;
use stentor_wire::json::{LostNumber, lost_number};

use crate::contract::{ErrorCode, Problem, ServiceResult};

pub(crate) use strict_objects::StrictObjects;

/// Decodes a JSON object; a problem names the field.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> ServiceResult<T> {
    decode_with(PhantomData::<T>, bytes)
}

/// Decodes a JSON object with `seed`; a problem names the field.
pub(crate) fn decode_with<'de, S: DeserializeSeed<'de> + Copy>(
    seed: S,
    bytes: &'de [u8],
) -> ServiceResult<S::Value> {
    let bytes = without_mark(bytes);
    let first = bytes.trim_ascii_start().first();
    if matches!(first, Some(b'[' | b'"' | b'0'..=b'9' | b'-' | b't' | b'f' | b'n')) {
        return Err(Problem::new(ErrorCode::InvalidRequest, "the body must be a JSON object"));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = seed.deserialize(StrictObjects(&mut reader)).map_err(|error| explain(seed, bytes, &error))?;
    let end = reader.end();
    end.map_err(|error| errors::of_json("", &error))?;
    refuse_lost_number(bytes)?;
    Ok(value)
}

/// Decodes any JSON value, as found in a field of another format.
pub(crate) fn free_value(text: &[u8]) -> ServiceResult<Value> {
    let value = serde_json::from_slice(text)
        .map_err(|error| Problem::field("", format!("must be the text of a JSON value: {error}")))?;
    refuse_lost_number(text)?;
    Ok(value)
}

/// Strips the byte order mark that some editors put before a text.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Refuses a number that would be rounded: numbers must be passed on unchanged.
fn refuse_lost_number(document: &[u8]) -> ServiceResult<()> {
    match lost_number(document) {
        None => Ok(()),
        Some(LostNumber { path }) => {
            let problem =
                Problem::field(path, "is a number of more digits than can be kept, and would be rounded");
            Err(problem.with_hint("write it as a text"))
        }
    }
}

/// Converts an already decoded record; a problem names the field.
pub(crate) fn decode_value<T: DeserializeOwned>(record: Map<String, Value>) -> ServiceResult<T> {
    let mut track = Track::new();
    let from = StrictObjects(Value::Object(record));
    let read = T::deserialize(serde_path_to_error::Deserializer::new(from, &mut track));
    read.map_err(|error| errors::of_json(&track.path().to_string(), &error))
}

/// Decodes a rejected document again, slowly, to find the name of the field.
fn explain<'de, S: DeserializeSeed<'de>>(seed: S, bytes: &'de [u8], error: &serde_json::Error) -> Problem {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let mut track = Track::new();
    match seed.deserialize(serde_path_to_error::Deserializer::new(StrictObjects(&mut reader), &mut track)) {
        Err(found) => errors::of_json(&track.path().to_string(), &found),
        Ok(_) => errors::of_json("", error),
    }
}
