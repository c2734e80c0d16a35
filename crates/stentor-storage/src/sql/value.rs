//! Values of parameters.

use std::borrow::Cow;

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Bool(bool),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    /// A list of numbers.
    Ints(Vec<Option<i64>>),
    /// A list of texts.
    Texts(Vec<Option<String>>),
    /// A list of blobs, which PostgreSQL alone has.
    Blobs(Vec<Vec<u8>>),
}

impl Value<'_> {
    /// Returns a column of numbers, one of each row.
    pub(crate) fn ints<T>(rows: &[T], read: impl Fn(&T) -> i64) -> Self {
        Self::Ints(rows.iter().map(|row| Some(read(row))).collect())
    }

    /// Returns a column of numbers that rows may lack.
    pub(crate) fn maybe_ints<T>(rows: &[T], read: impl Fn(&T) -> Option<i64>) -> Self {
        Self::Ints(rows.iter().map(read).collect())
    }

    /// Returns a column of texts that rows may lack.
    pub(crate) fn texts<T>(rows: &[T], read: impl Fn(&T) -> Option<String>) -> Self {
        Self::Texts(rows.iter().map(read).collect())
    }
}

macro_rules! integers {
    ($($kind:ty),+) => {$(
        impl From<$kind> for Value<'_> {
            fn from(number: $kind) -> Self {
                Self::Int(number.into())
            }
        }
    )+};
}
integers!(i64, u8, u16, u32);

impl From<&i64> for Value<'_> {
    fn from(number: &i64) -> Self {
        Self::Int(*number)
    }
}

impl From<bool> for Value<'_> {
    fn from(word: bool) -> Self {
        Self::Bool(word)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }
}

impl<'a> From<&'a Vec<u8>> for Value<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }
}

impl From<Vec<u8>> for Value<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(Cow::Owned(bytes))
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Value<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }
}

impl<const N: usize> From<[u8; N]> for Value<'_> {
    fn from(bytes: [u8; N]) -> Self {
        Self::Bytes(Cow::Owned(bytes.to_vec()))
    }
}

impl From<Vec<i64>> for Value<'_> {
    fn from(numbers: Vec<i64>) -> Self {
        Self::Ints(numbers.into_iter().map(Some).collect())
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The parameters of a statement.
pub(crate) trait Params<'a> {
    /// The list of the values.
    type Values: AsRef<[Value<'a>]>;

    /// Returns the values in order.
    fn values(self) -> Self::Values;
}

impl<'a> Params<'a> for () {
    type Values = [Value<'a>; 0];

    fn values(self) -> Self::Values {
        []
    }
}

impl<'a, T: Into<Value<'a>>, const N: usize> Params<'a> for [T; N] {
    type Values = [Value<'a>; N];

    fn values(self) -> Self::Values {
        self.map(|value| value.into())
    }
}

impl<'a> Params<'a> for Vec<Value<'a>> {
    type Values = Self;

    fn values(self) -> Self::Values {
        self
    }
}

impl<'a> Params<'a> for &[Value<'a>] {
    type Values = Self;

    fn values(self) -> Self::Values {
        self
    }
}

/// Lists values of several types.
macro_rules! params {
    ($($value:expr),+ $(,)?) => { [$($crate::sql::Value::from($value)),+] };
}
pub(crate) use params;
