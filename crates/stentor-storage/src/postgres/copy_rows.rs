//! Rows on their way into a table, in the binary form of `COPY`: the server plans nothing for them and takes no arrays apart.

use super::fault::nul;
use crate::sql::Done;

/// The signature, no flags, and no extension.
const HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Stands for the count of a row's columns after the last row, and for the length of a column without a value.
const NOTHING: i8 = -1;

/// Rows of one table, each with the same columns.
pub(super) struct CopyRows {
    bytes: Vec<u8>,
    columns_count: i16,
    has_nul: bool,
}

impl CopyRows {
    /// Begins without rows.
    pub(super) fn new(columns_count: i16) -> Self {
        Self { bytes: HEAD.to_vec(), columns_count, has_nul: false }
    }

    /// Begins a row; its columns follow in their order.
    pub(super) fn row(&mut self) {
        self.bytes.extend_from_slice(&self.columns_count.to_be_bytes());
    }

    /// Adds a number of eight bytes.
    pub(super) fn bigint(&mut self, number: impl Into<Option<i64>>) {
        let number = number.into().map(i64::to_be_bytes);
        self.column(number.as_ref().map(<[u8; 8]>::as_slice));
    }

    /// Adds a number of two bytes.
    pub(super) fn smallint(&mut self, number: i16) {
        self.column(Some(&number.to_be_bytes()));
    }

    /// Adds a number of four bytes.
    pub(super) fn integer(&mut self, number: i32) {
        self.column(Some(&number.to_be_bytes()));
    }

    /// Adds bytes.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.column(Some(bytes));
    }

    /// Adds a value of one byte.
    pub(super) fn boolean(&mut self, word: bool) {
        self.column(Some(&[u8::from(word)]));
    }

    /// Adds a text.
    pub(super) fn text<'a>(&mut self, text: impl Into<Option<&'a str>>) {
        let text = text.into();
        self.has_nul |= text.is_some_and(|text| text.contains('\0'));
        self.column(text.map(str::as_bytes));
    }

    /// Ends the rows. Fails if a text contains U+0000, which the server cannot store.
    pub(super) fn finish(mut self) -> Done<Vec<u8>> {
        if self.has_nul {
            return Err(nul());
        }
        self.bytes.extend_from_slice(&i16::from(NOTHING).to_be_bytes());
        Ok(self.bytes)
    }

    fn column(&mut self, value: Option<&[u8]>) {
        // Limits checked before keep every value far below two gigabytes.
        let length = value.map_or(i32::from(NOTHING), |value| i32::try_from(value.len()).unwrap_or(i32::MAX));
        self.bytes.extend_from_slice(&length.to_be_bytes());
        self.bytes.extend_from_slice(value.unwrap_or_default());
    }
}
