//! From values to parameters: each takes the width that its column has.

use std::error::Error;

use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// A value of a statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PostgresValue {
    Null,
    Int(i64),
    Bool(bool),
    Text(String),
    Bytes(Vec<u8>),
    Ints(Vec<Option<i64>>),
    Blobs(Vec<Vec<u8>>),
    Texts(Vec<Option<String>>),
}

impl PostgresValue {
    /// Returns a column of numbers, one of each row.
    pub(super) fn ints<T>(rows: &[T], read: impl Fn(&T) -> i64) -> Self {
        Self::Ints(rows.iter().map(|row| Some(read(row))).collect())
    }

    /// Returns a column of numbers that rows may lack.
    pub(super) fn maybe_ints<T>(rows: &[T], read: impl Fn(&T) -> Option<i64>) -> Self {
        Self::Ints(rows.iter().map(read).collect())
    }

    /// Returns a column of texts that rows may lack.
    pub(super) fn texts<T>(rows: &[T], read: impl Fn(&T) -> Option<String>) -> Self {
        Self::Texts(rows.iter().map(read).collect())
    }

    /// Returns whether a text of it has a NUL, which no text of PostgreSQL can hold.
    pub(super) fn has_nul(&self) -> bool {
        match self {
            Self::Text(text) => text.contains('\0'),
            Self::Texts(texts) => texts.iter().flatten().any(|text| text.contains('\0')),
            _ => false,
        }
    }
}

impl ToSql for PostgresValue {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) => put_int(*number, ty, out),
            Self::Bool(word) => word.to_sql(ty, out),
            Self::Text(text) => text.to_sql(ty, out),
            Self::Bytes(bytes) => bytes.to_sql(ty, out),
            Self::Ints(numbers) => put_ints(numbers, ty, out),
            Self::Blobs(blobs) => blobs.to_sql(ty, out),
            Self::Texts(texts) => texts.to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn put_int(number: i64, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
    match *ty {
        Type::INT2 => i16::try_from(number)?.to_sql(ty, out),
        Type::INT4 => i32::try_from(number)?.to_sql(ty, out),
        Type::BOOL => (number != 0).to_sql(ty, out),
        _ => number.to_sql(ty, out),
    }
}

fn put_ints(
    numbers: &[Option<i64>],
    ty: &Type,
    out: &mut BytesMut,
) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
    match *ty {
        Type::INT2_ARRAY => {
            let narrow = |number: &Option<i64>| number.map(i16::try_from).transpose();
            numbers.iter().map(narrow).collect::<Result<Vec<_>, _>>()?.to_sql(ty, out)
        }
        Type::INT4_ARRAY => {
            let narrow = |number: &Option<i64>| number.map(i32::try_from).transpose();
            numbers.iter().map(narrow).collect::<Result<Vec<_>, _>>()?.to_sql(ty, out)
        }
        _ => numbers.to_sql(ty, out),
    }
}

impl From<bool> for PostgresValue {
    fn from(word: bool) -> Self {
        Self::Bool(word)
    }
}

impl From<i64> for PostgresValue {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u8> for PostgresValue {
    fn from(number: u8) -> Self {
        Self::Int(number.into())
    }
}

impl From<u16> for PostgresValue {
    fn from(number: u16) -> Self {
        Self::Int(number.into())
    }
}

impl From<u32> for PostgresValue {
    fn from(number: u32) -> Self {
        Self::Int(number.into())
    }
}

impl From<&str> for PostgresValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for PostgresValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&String> for PostgresValue {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<[u8; 32]> for PostgresValue {
    fn from(bytes: [u8; 32]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl From<Vec<u8>> for PostgresValue {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<&Vec<u8>> for PostgresValue {
    fn from(bytes: &Vec<u8>) -> Self {
        Self::Bytes(bytes.clone())
    }
}

impl From<Vec<i64>> for PostgresValue {
    fn from(numbers: Vec<i64>) -> Self {
        Self::Ints(numbers.into_iter().map(Some).collect())
    }
}

impl<T: Into<Self>> From<Option<T>> for PostgresValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// What a statement can be given.
pub(super) trait Params {
    /// Returns the values in order.
    fn values(self) -> Vec<PostgresValue>;
}

impl Params for () {
    fn values(self) -> Vec<PostgresValue> {
        Vec::new()
    }
}

impl Params for Vec<PostgresValue> {
    fn values(self) -> Vec<PostgresValue> {
        self
    }
}

impl<T: Into<PostgresValue>, const N: usize> Params for [T; N] {
    fn values(self) -> Vec<PostgresValue> {
        self.into_iter().map(Into::into).collect()
    }
}

/// Puts values of several kinds together.
macro_rules! params {
    ($($value:expr),+ $(,)?) => { vec![$($crate::postgres::value::PostgresValue::from($value)),+] };
}
pub(super) use params;
