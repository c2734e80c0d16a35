//! From columns to values: whatever does not make sense is damage, never a panic.

use stentor_core::error::Invalid;
use stentor_core::time::Timestamp;
use tokio_postgres::types::{FromSql, Type, WrongType};

use super::fault::{Done, PostgresError, damaged, words};

/// A row that was read.
pub(super) struct PostgresRow<'a>(pub(super) &'a tokio_postgres::Row);

/// A value that a column can be read as.
pub(super) trait Column: Sized {
    /// Reads a column.
    fn read(row: &PostgresRow<'_>, at: usize) -> Done<Self>;
}

impl PostgresRow<'_> {
    /// Reads a column.
    pub(super) fn get<T: Column>(&self, at: usize) -> Done<T> {
        T::read(self, at)
    }

    /// Reads a text without copying it.
    pub(super) fn str(&self, at: usize) -> Done<&str> {
        self.raw(at)
    }

    /// Reads a list of texts without copying them.
    pub(super) fn strs(&self, at: usize) -> Done<Vec<&str>> {
        self.raw(at)
    }

    /// Reads bytes without copying them.
    pub(super) fn bytes(&self, at: usize) -> Done<&[u8]> {
        self.raw(at)
    }

    /// Reads bytes that may be absent.
    pub(super) fn maybe_bytes(&self, at: usize) -> Done<Option<&[u8]>> {
        self.raw(at)
    }

    fn raw<'r, T: FromSql<'r>>(&'r self, at: usize) -> Done<T> {
        self.0.try_get(at).map_err(|error| {
            // A type that is not asked for is the statement's fault; anything else is the value's own.
            let is_ours = std::error::Error::source(&error).is_none_or(|source| source.is::<WrongType>());
            if is_ours { PostgresError::Engine(error) } else { damaged(&words(&error)) }
        })
    }
}

/// A whole number of any width.
struct Whole(i64);

impl<'r> FromSql<'r> for Whole {
    fn from_sql(ty: &Type, raw: &'r [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        match *ty {
            Type::INT2 => i16::from_sql(ty, raw).map(|number| Self(number.into())),
            Type::INT4 => i32::from_sql(ty, raw).map(|number| Self(number.into())),
            _ => i64::from_sql(ty, raw).map(Self),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::INT2, Type::INT4, Type::INT8].contains(ty)
    }
}

impl Column for i64 {
    fn read(row: &PostgresRow<'_>, at: usize) -> Done<Self> {
        row.raw::<Whole>(at).map(|whole| whole.0)
    }
}

impl Column for Option<i64> {
    fn read(row: &PostgresRow<'_>, at: usize) -> Done<Self> {
        row.raw::<Option<Whole>>(at).map(|whole| whole.map(|whole| whole.0))
    }
}

impl Column for bool {
    fn read(row: &PostgresRow<'_>, at: usize) -> Done<Self> {
        row.raw(at)
    }
}

impl Column for Option<bool> {
    fn read(row: &PostgresRow<'_>, at: usize) -> Done<Self> {
        row.raw(at)
    }
}

impl Column for String {
    fn read(row: &PostgresRow<'_>, at: usize) -> Done<Self> {
        row.raw(at)
    }
}

impl Column for Option<String> {
    fn read(row: &PostgresRow<'_>, at: usize) -> Done<Self> {
        row.raw(at)
    }
}

impl Column for Vec<u8> {
    fn read(row: &PostgresRow<'_>, at: usize) -> Done<Self> {
        row.raw(at)
    }
}

impl Column for Vec<i64> {
    fn read(row: &PostgresRow<'_>, at: usize) -> Done<Self> {
        row.raw(at)
    }
}

impl Column for u8 {
    fn read(row: &PostgresRow<'_>, at: usize) -> Done<Self> {
        narrow(row, at)
    }
}

impl Column for u16 {
    fn read(row: &PostgresRow<'_>, at: usize) -> Done<Self> {
        narrow(row, at)
    }
}

impl Column for u32 {
    fn read(row: &PostgresRow<'_>, at: usize) -> Done<Self> {
        narrow(row, at)
    }
}

fn narrow<T: TryFrom<i64>>(row: &PostgresRow<'_>, at: usize) -> Done<T> {
    T::try_from(row.get::<i64>(at)?).map_err(|_| damaged("a number out of its range"))
}

/// Turns a number below 2^63 into a column.
pub(super) const fn int(number: u64) -> i64 {
    number as i64
}

/// Reads a number that is never negative.
pub(super) fn number(row: &PostgresRow<'_>, at: usize) -> Done<u64> {
    u64::try_from(row.get::<i64>(at)?).map_err(|_| damaged("a negative number where none can be"))
}

/// Reads such a number that may be absent.
pub(super) fn maybe_number(row: &PostgresRow<'_>, at: usize) -> Done<Option<u64>> {
    let raw: Option<i64> = row.get(at)?;
    raw.map(|raw| u64::try_from(raw).map_err(|_| damaged("a negative number where none can be"))).transpose()
}

/// Reads an instant.
pub(super) fn time(row: &PostgresRow<'_>, at: usize) -> Done<Timestamp> {
    row.get(at).map(Timestamp::from_millis)
}

/// Reads an instant that may be absent.
pub(super) fn maybe_time(row: &PostgresRow<'_>, at: usize) -> Done<Option<Timestamp>> {
    Ok(row.get::<Option<i64>>(at)?.map(Timestamp::from_millis))
}

/// Reads one byte that stands for a word.
pub(super) fn code<T>(row: &PostgresRow<'_>, at: usize, from: fn(u8) -> Option<T>) -> Done<T> {
    let raw: u8 = row.get(at)?;
    from(raw).ok_or_else(|| damaged("a code that no version ever wrote"))
}

/// Reads such a byte that may be absent.
pub(super) fn maybe_code<T>(row: &PostgresRow<'_>, at: usize, from: fn(u8) -> Option<T>) -> Done<Option<T>> {
    let raw = maybe_number(row, at)?;
    let known = |raw: u64| u8::try_from(raw).ok().and_then(from);
    raw.map(|raw| known(raw).ok_or_else(|| damaged("a code that no version ever wrote"))).transpose()
}

/// Reads a checked text.
pub(super) fn text<T>(row: &PostgresRow<'_>, at: usize, new: fn(String) -> Result<T, Invalid>) -> Done<T> {
    new(row.get(at)?).map_err(|invalid| damaged(&format!("a kept name: {invalid}")))
}

/// Reads a checked text that may be absent.
pub(super) fn maybe_text<T>(
    row: &PostgresRow<'_>,
    at: usize,
    new: fn(String) -> Result<T, Invalid>,
) -> Done<Option<T>> {
    let raw: Option<String> = row.get(at)?;
    raw.map(new).transpose().map_err(|invalid| damaged(&format!("a kept name: {invalid}")))
}

/// Reads the hash of something.
pub(super) fn hash(row: &PostgresRow<'_>, at: usize) -> Done<[u8; 32]> {
    row.bytes(at)?.try_into().map_err(|_| damaged("a hash of the wrong length"))
}
