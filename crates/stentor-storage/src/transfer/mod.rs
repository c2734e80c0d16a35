//! The common ground of two engines for copying a store's rows: tables, values, and the sides of a copy.

mod devices;
mod tables;
mod value;

use std::collections::BTreeMap;

use stentor_core::ports::store::StoreError;

use crate::sql::{Connection, Done, Row, all, limit, one};

pub(crate) use devices::{DeviceToken, device_tokens};
pub(crate) use tables::{TABLES, TransferTable, check_columns};
pub use value::TableSum;
pub(crate) use value::{TransferRow, TransferValue, decode_key, encode_key, values_of};

/// The last assigned numbers, by counter.
pub(crate) type TransferCounters = BTreeMap<&'static str, i64>;

/// Counters that are rows of `sequences` in both engines.
pub(crate) const SHARED_COUNTERS: [&str; 3] = ["device", "fleet", "id"];

/// The progress of a table's copy: its rows so far, and the key of the last one.
pub(crate) type TableProgress = (u64, String);

/// One side of a copy, which has no other users during the copy.
pub(crate) trait TransferSide {
    /// Returns the connection to the database.
    fn connection(&self) -> &Connection;
    /// Returns the statement that lists all tables and columns.
    fn list_of_columns(&self) -> &'static str;
    /// Returns true if a copy into it was begun and not finished.
    fn is_unfinished(&self) -> Done<bool>;
    /// Removes a portion of the rows that other engines would store in a different way; returns true if more are left.
    fn work_off(&mut self) -> Result<bool, StoreError>;
    /// Records that a copy into this side is in progress: a server refuses it until the copy is finished.
    fn begin(&mut self) -> Result<(), StoreError>;
    /// Writes rows of a table and how far it has come, all or nothing.
    fn write(
        &mut self,
        table: &TransferTable,
        rows: &[TransferRow],
        progress: &TableProgress,
    ) -> Result<(), StoreError>;
    /// Returns the last numbers given out.
    fn counters(&mut self) -> Result<TransferCounters, StoreError>;
    /// Sets the counters, and records that the copy is finished.
    fn finish(&mut self, counters: &TransferCounters) -> Result<(), StoreError>;
}

impl dyn TransferSide + '_ {
    /// Lists all tables and columns.
    pub(crate) fn columns(&self) -> Result<Vec<(String, String)>, StoreError> {
        Ok(all(self.connection(), self.list_of_columns(), (), |row| Ok((row.get(0)?, row.get(1)?)))?)
    }

    /// Counts the rows of a table.
    pub(crate) fn count(&self, table: &TransferTable) -> Result<u64, StoreError> {
        let sql = format!("SELECT count(*) FROM {}", table.name);
        let count = one(self.connection(), &sql, (), |row| row.get::<i64>(0))?;
        Ok(count.unwrap_or_default().cast_unsigned())
    }

    /// Reads the next rows after a key, in order of key.
    pub(crate) fn read(
        &self,
        table: &TransferTable,
        after: Option<&[TransferValue]>,
        max: usize,
    ) -> Result<Vec<TransferRow>, StoreError> {
        let columns = table.columns;
        let (list, keys) = (columns.join(", "), columns[..table.key_columns_count].join(", "));
        let mut values = values_of(after.unwrap_or_default());
        let places: Vec<String> = (1..=values.len()).map(|place| format!("?{place}")).collect();
        let condition =
            after.map_or_else(String::new, |_| format!("WHERE ({keys}) > ({})", places.join(", ")));
        values.push(limit(max).into());
        let sql =
            format!("SELECT {list} FROM {} {condition} ORDER BY {keys} LIMIT ?{}", table.name, values.len());
        let read = |row: &Row<'_>| (0..columns.len()).map(|at| TransferValue::read(row, at)).collect();
        Ok(all(self.connection(), &sql, values, read)?)
    }

    /// Returns the progress of a copy into a side by table, or none if no copy is under way.
    pub(crate) fn progress(&self) -> Result<Option<BTreeMap<String, TableProgress>>, StoreError> {
        if !self.is_unfinished()? {
            return Ok(None);
        }
        let read = |row: &Row<'_>| {
            let count: i64 = row.get(1)?;
            Ok((row.get(0)?, (count.cast_unsigned(), row.get(2)?)))
        };
        let found = all(self.connection(), "SELECT name, row_count, last FROM store_copy", (), read)?;
        Ok(Some(found.into_iter().collect()))
    }
}

/// Returns that a store is not all there yet.
pub(crate) fn unfinished() -> StoreError {
    StoreError::Conflict(
        "a copy into this store was not finished: run `stentor store copy` again, or empty it".to_owned(),
    )
}
