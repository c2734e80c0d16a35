//! The columns of the optional texts of a device, in the order of their table.

use stentor_core::device::{DEVICE_TEXTS, DEVICE_TEXTS_COUNT};

use crate::sql::{Done, Row};

/// Lists something for each column, with commas between.
pub(crate) fn list(mut column: impl FnMut(&str) -> String) -> String {
    DEVICE_TEXTS.map(|text| column(text.name)).join(", ")
}

/// Reads the columns from a place on.
pub(crate) fn read(row: &Row<'_>, first: usize) -> Done<[Option<String>; DEVICE_TEXTS_COUNT]> {
    let mut texts = [const { None }; DEVICE_TEXTS_COUNT];
    for (index, text) in texts.iter_mut().enumerate() {
        *text = row.get(first + index)?;
    }
    Ok(texts)
}
