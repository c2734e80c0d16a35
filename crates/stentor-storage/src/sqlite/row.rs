//! From columns to values: whatever does not make sense is damage, never a panic.

use rusqlite::Row;
use stentor_core::error::Invalid;
use stentor_core::time::Timestamp;

use super::fault::{Done, damaged};

/// Turns a number below 2^63 into a column.
pub(super) const fn int(number: u64) -> i64 {
    number as i64
}

/// Reads a number that is never negative.
pub(super) fn number(row: &Row<'_>, at: usize) -> Done<u64> {
    let raw: i64 = row.get(at)?;
    u64::try_from(raw).map_err(|_| damaged("a negative number where none can be"))
}

/// Reads such a number that may be absent.
pub(super) fn maybe_number(row: &Row<'_>, at: usize) -> Done<Option<u64>> {
    let raw: Option<i64> = row.get(at)?;
    raw.map(|raw| u64::try_from(raw).map_err(|_| damaged("a negative number where none can be"))).transpose()
}

/// Reads an instant.
pub(super) fn time(row: &Row<'_>, at: usize) -> Done<Timestamp> {
    Ok(Timestamp::from_millis(row.get(at)?))
}

/// Reads an instant that may be absent.
pub(super) fn maybe_time(row: &Row<'_>, at: usize) -> Done<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(at)?.map(Timestamp::from_millis))
}

/// Reads one byte that stands for a word.
pub(super) fn code<T>(row: &Row<'_>, at: usize, from: fn(u8) -> Option<T>) -> Done<T> {
    let raw: u8 = row.get(at)?;
    from(raw).ok_or_else(|| damaged("a code that no version ever wrote"))
}

/// Reads such a byte that may be absent.
pub(super) fn maybe_code<T>(row: &Row<'_>, at: usize, from: fn(u8) -> Option<T>) -> Done<Option<T>> {
    let raw: Option<u8> = row.get(at)?;
    raw.map(|raw| from(raw).ok_or_else(|| damaged("a code that no version ever wrote"))).transpose()
}

/// Reads a checked text.
pub(super) fn text<T>(row: &Row<'_>, at: usize, new: fn(String) -> Result<T, Invalid>) -> Done<T> {
    new(row.get(at)?).map_err(|invalid| damaged(&format!("a kept name: {invalid}")))
}

/// Reads a checked text that may be absent.
pub(super) fn maybe_text<T>(
    row: &Row<'_>,
    at: usize,
    new: fn(String) -> Result<T, Invalid>,
) -> Done<Option<T>> {
    let raw: Option<String> = row.get(at)?;
    raw.map(new).transpose().map_err(|invalid| damaged(&format!("a kept name: {invalid}")))
}

/// Reads the hash of something.
pub(super) fn hash(row: &Row<'_>, at: usize) -> Done<[u8; 32]> {
    let bytes = row.get_ref(at)?.as_blob().map_err(|_| damaged("a hash that is no bytes"))?;
    bytes.try_into().map_err(|_| damaged("a hash of the wrong length"))
}
