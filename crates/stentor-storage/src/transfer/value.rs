//! Values on their way from one engine to another.

use crate::sql::{Done, Row, Value};
use serde_json::Value as Json;

/// A value of a column, of any width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TransferValue {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A row, its columns in the order of its table's list.
pub(crate) type TransferRow = Vec<TransferValue>;

impl TransferValue {
    /// Reads a column as it is: a truth value is a number.
    pub(crate) fn read(row: &Row<'_>, at: usize) -> Done<Self> {
        Ok(match row.any(at)? {
            Value::Int(number) => Self::Int(number),
            Value::Bool(word) => Self::Int(word.into()),
            Value::Text(text) => Self::Text(text.into_owned()),
            Value::Bytes(bytes) => Self::Bytes(bytes.into_owned()),
            _ => Self::Null,
        })
    }
}

impl<'a> From<&'a TransferValue> for Value<'a> {
    fn from(value: &'a TransferValue) -> Self {
        match value {
            TransferValue::Null => Self::Null,
            TransferValue::Int(number) => (*number).into(),
            TransferValue::Text(text) => text.into(),
            TransferValue::Bytes(bytes) => bytes.into(),
        }
    }
}

/// Returns the columns of a row as parameters.
pub(crate) fn values_of(row: &[TransferValue]) -> Vec<Value<'_>> {
    row.iter().map(Value::from).collect()
}

/// The row count of a table, and a checksum that does not depend on the order of the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableSum {
    /// The number of rows.
    pub rows: u64,
    /// The sum, modulo 2^64, of the first eight bytes of each row's BLAKE3 hash.
    pub checksum: u64,
}

impl TableSum {
    /// Adds a row.
    pub(crate) fn add(&mut self, row: &TransferRow) {
        let mut hasher = blake3::Hasher::new();
        for value in row {
            value.hash_into(&mut hasher);
        }
        let first = hasher.finalize().as_bytes().first_chunk().copied().unwrap_or_default();
        self.rows += 1;
        self.checksum = self.checksum.wrapping_add(u64::from_le_bytes(first));
    }
}

impl TransferValue {
    /// Returns the bytes of a value with its kind and length before them, so that no two rows look alike.
    fn hash_into(&self, hasher: &mut blake3::Hasher) {
        let number;
        let (kind, bytes): (u8, &[u8]) = match self {
            Self::Null => (0, &[]),
            Self::Int(value) => {
                number = value.to_le_bytes();
                (1, &number)
            }
            Self::Text(text) => (2, text.as_bytes()),
            Self::Bytes(bytes) => (3, bytes),
        };
        hasher.update(&[kind]);
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    }
}

/// Encodes the key of a row as a text, from which a copy is resumed.
pub(crate) fn encode_key(key: &[TransferValue]) -> String {
    let parts = key.iter().map(|value| match value {
        TransferValue::Int(number) => Json::from(*number),
        TransferValue::Text(text) => Json::from(text.as_str()),
        // No key of ours is bytes or absent.
        TransferValue::Null | TransferValue::Bytes(_) => Json::Null,
    });
    Json::Array(parts.collect()).to_string()
}

/// Parses such a text; `None` if it is invalid.
pub(crate) fn decode_key(text: &str) -> Option<Vec<TransferValue>> {
    let parts: Vec<Json> = serde_json::from_str(text).ok()?;
    let value = |part: Json| match part {
        Json::Number(number) => number.as_i64().map(TransferValue::Int),
        Json::String(text) => Some(TransferValue::Text(text)),
        _ => None,
    };
    parts.into_iter().map(value).collect()
}
