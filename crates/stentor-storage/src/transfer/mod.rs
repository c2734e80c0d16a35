//! What two engines must agree on so that the rows of a store go from one to the other: tables, values, and a side of a copy.

mod devices;
mod tables;
mod value;

use std::collections::BTreeMap;

use stentor_core::ports::store::StoreError;

pub(crate) use devices::device_tokens;
pub(crate) use tables::{TABLES, TransferTable, check_columns};
pub use value::TableSum;
pub(crate) use value::{TransferRow, TransferValue, decode_key, encode_key, values_of};

/// The last numbers given out, by what is numbered.
pub(crate) type TransferCounters = BTreeMap<&'static str, i64>;

/// Counters that are rows of `sequences` in both engines.
pub(crate) const SHARED_COUNTERS: [&str; 3] = ["device", "fleet", "id"];

/// How far a table was copied: rows, and the key of the last one.
pub(crate) type TableProgress = (u64, String);

/// One side of a copy; nobody else uses it meanwhile.
pub(crate) trait TransferSide {
    /// Lists all tables and columns that there are.
    fn columns(&mut self) -> Result<Vec<(String, String)>, StoreError>;
    /// Does what other engines would note in another way.
    fn work_off(&mut self) -> Result<(), StoreError>;
    /// Counts the rows of a table.
    fn count(&mut self, table: &TransferTable) -> Result<u64, StoreError>;
    /// Reads the next rows after a key, in order of key.
    fn read(
        &mut self,
        table: &TransferTable,
        after: Option<&[TransferValue]>,
        max: usize,
    ) -> Result<Vec<TransferRow>, StoreError>;
    /// Returns how far a copy into it has come, by table; none where none is under way.
    fn progress(&mut self) -> Result<Option<BTreeMap<String, TableProgress>>, StoreError>;
    /// Notes that a copy into it is under way: a server refuses it until it is finished.
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
    /// Lets numbers go on after these, and notes that the copy is finished.
    fn finish(&mut self, counters: &TransferCounters) -> Result<(), StoreError>;
}

/// Returns that a store is not all there yet.
pub(crate) fn unfinished() -> StoreError {
    StoreError::Conflict(
        "a copy into this store was not finished: run `stentor store copy` again, or empty it".to_owned(),
    )
}
