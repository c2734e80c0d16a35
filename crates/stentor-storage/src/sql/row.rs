//! Columns as values: an invalid column is damage, never a panic.

use stentor_core::error::Invalid;
use stentor_core::time::Timestamp;

use super::error::{Done, damaged};
use super::value::Value;

/// A row of either engine.
pub(crate) type Row<'r> = dyn SqlRow + 'r;

/// The columns of a row; `None` is `NULL`.
pub(crate) trait SqlRow {
    /// Reads a whole number of any width.
    fn maybe_int(&self, at: usize) -> Done<Option<i64>>;
    /// Reads a truth value.
    fn maybe_bool(&self, at: usize) -> Done<Option<bool>>;
    /// Reads a text without copying it.
    fn maybe_str(&self, at: usize) -> Done<Option<&str>>;
    /// Reads bytes without copying them.
    fn maybe_bytes(&self, at: usize) -> Done<Option<&[u8]>>;
    /// Reads a column of any type.
    fn any(&self, at: usize) -> Done<Value<'_>>;
    /// Returns a number that distinguishes rows without a key.
    fn identity(&self, at: usize) -> i64;

    /// Reads a list of numbers; PostgreSQL alone has lists.
    fn ints(&self, _at: usize) -> Done<Vec<i64>> {
        Err(damaged("no list"))
    }

    /// Reads a list of texts without copying them; PostgreSQL alone has lists.
    fn strs(&self, _at: usize) -> Done<Vec<&str>> {
        Err(damaged("no list"))
    }
}

/// A type that a column can be read as.
pub(crate) trait Column: Sized {
    /// Reads a column.
    fn read(row: &Row<'_>, at: usize) -> Done<Self>;
}

impl<'r> dyn SqlRow + 'r {
    /// Reads a column.
    pub(crate) fn get<T: Column>(&self, at: usize) -> Done<T> {
        T::read(self, at)
    }

    /// Reads a text without copying it.
    pub(crate) fn str(&self, at: usize) -> Done<&str> {
        self.maybe_str(at)?.ok_or_else(null)
    }

    /// Reads bytes without copying them.
    pub(crate) fn bytes(&self, at: usize) -> Done<&[u8]> {
        self.maybe_bytes(at)?.ok_or_else(null)
    }
}

fn null() -> super::SqlError {
    damaged("no value where one must be")
}

/// Implements `Column` for a type and for its absence.
macro_rules! columns {
    ($($kind:ty => $read:expr),+ $(,)?) => {$(
        impl Column for $kind {
            fn read(row: &Row<'_>, at: usize) -> Done<Self> {
                <Option<Self> as Column>::read(row, at)?.ok_or_else(null)
            }
        }

        impl Column for Option<$kind> {
            fn read(row: &Row<'_>, at: usize) -> Done<Self> {
                let read: fn(&Row<'_>, usize) -> Done<Self> = $read;
                read(row, at)
            }
        }
    )+};
}

columns! {
    i64 => |row, at| row.maybe_int(at),
    bool => |row, at| row.maybe_bool(at),
    u8 => narrow,
    u16 => narrow,
    u32 => narrow,
    String => |row, at| Ok(row.maybe_str(at)?.map(str::to_owned)),
    Vec<u8> => |row, at| Ok(row.maybe_bytes(at)?.map(<[u8]>::to_vec)),
}

impl Column for Vec<i64> {
    fn read(row: &Row<'_>, at: usize) -> Done<Self> {
        row.ints(at)
    }
}

fn narrow<T: TryFrom<i64>>(row: &Row<'_>, at: usize) -> Done<Option<T>> {
    let narrow = |number| T::try_from(number).map_err(|_| damaged("a number out of its range"));
    row.maybe_int(at)?.map(narrow).transpose()
}

/// Turns a number below 2^63 into a column.
pub(crate) const fn int(number: u64) -> i64 {
    number as i64
}

/// Reads a number that is never negative.
pub(crate) fn number(row: &Row<'_>, at: usize) -> Done<u64> {
    maybe_number(row, at)?.ok_or_else(null)
}

/// Reads a number that is never negative and may be absent.
pub(crate) fn maybe_number(row: &Row<'_>, at: usize) -> Done<Option<u64>> {
    let unsigned = |raw| u64::try_from(raw).map_err(|_| damaged("a negative number where none can be"));
    row.maybe_int(at)?.map(unsigned).transpose()
}

/// Reads an instant.
pub(crate) fn time(row: &Row<'_>, at: usize) -> Done<Timestamp> {
    row.get(at).map(Timestamp::from_millis)
}

/// Reads an instant that may be absent.
pub(crate) fn maybe_time(row: &Row<'_>, at: usize) -> Done<Option<Timestamp>> {
    Ok(row.maybe_int(at)?.map(Timestamp::from_millis))
}

/// Reads a code of one byte.
pub(crate) fn code<T>(row: &Row<'_>, at: usize, from: fn(u8) -> Option<T>) -> Done<T> {
    maybe_code(row, at, from)?.ok_or_else(null)
}

/// Reads an optional code of one byte.
pub(crate) fn maybe_code<T>(row: &Row<'_>, at: usize, from: fn(u8) -> Option<T>) -> Done<Option<T>> {
    let raw: Option<u8> = row.get(at)?;
    raw.map(|raw| from(raw).ok_or_else(|| damaged("a code that no version ever wrote"))).transpose()
}

/// Reads a checked text.
pub(crate) fn text<T>(row: &Row<'_>, at: usize, new: fn(String) -> Result<T, Invalid>) -> Done<T> {
    maybe_text(row, at, new)?.ok_or_else(null)
}

/// Reads a checked text that may be absent.
pub(crate) fn maybe_text<T>(
    row: &Row<'_>,
    at: usize,
    new: fn(String) -> Result<T, Invalid>,
) -> Done<Option<T>> {
    let raw: Option<String> = row.get(at)?;
    raw.map(new).transpose().map_err(|invalid| damaged(&format!("a kept name: {invalid}")))
}

/// Reads a hash.
pub(crate) fn hash(row: &Row<'_>, at: usize) -> Done<[u8; 32]> {
    row.bytes(at)?.try_into().map_err(|_| damaged("a hash of the wrong length"))
}
