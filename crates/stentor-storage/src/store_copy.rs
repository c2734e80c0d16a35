//! The copy of a store from one engine to another, in either direction. Each page is one transaction, so that an interrupted copy can be
//! resumed. At the end the rows of both sides are counted and summed up.

use stentor_core::ports::store::StoreError;

use crate::store_place::{StorePlace, open};
use crate::texts::{NUL_REFUSED, has_nul};
pub use crate::transfer::TableSum;
use crate::transfer::{
    TABLES, TableProgress, TransferRow, TransferSide, TransferTable, TransferValue, check_columns,
    decode_key, encode_key,
};

/// Rows that are left out and named one by one.
pub const LEFT_OUT_NAMED_MAX_COUNT: usize = 1_000;
/// Rows that are read at once and written in one transaction.
const PAGE_MAX_ROWS: usize = 4_096;

/// The progress of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyStep {
    /// Some of the rows are copied.
    Copied {
        /// Rows so far, those of an earlier run among them.
        rows: u64,
        /// The number of rows in all.
        of: u64,
    },
    /// Some of the rows of both sides are summed up.
    Verified {
        /// Rows so far.
        rows: u64,
        /// The number of rows in all.
        of: u64,
    },
}

/// The handling of rows that the target cannot store because a text in them contains U+0000, which earlier versions accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnkeepableRows {
    /// The copy ends and names it.
    Refuse,
    /// It is left out and named at the end.
    LeaveOut,
}

/// A row that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowLeftOut {
    /// Its table.
    pub table: &'static str,
    /// Its key, as a JSON list.
    pub key: String,
}

/// The result of a copy. Both sides were compared and are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreCopy {
    /// Each table and its sum, in the order of the copy.
    pub tables: Vec<(&'static str, TableSum)>,
    /// Rows that were left out, the first [`LEFT_OUT_NAMED_MAX_COUNT`].
    pub left_out: Vec<RowLeftOut>,
    /// The number of rows left out.
    pub left_out_count: u64,
    /// True if an earlier run had begun the copy.
    pub resumed: bool,
}

/// Copies a store into an empty one, or resumes a copy that was interrupted, and compares both sides.
///
/// Fails with Conflict if a side is in use, if the target holds a store, or if the two sides differ at the end. Keys are not copied, as
/// they are no part of a store.
pub fn copy_store(
    from: &StorePlace,
    to: &StorePlace,
    unkeepable: UnkeepableRows,
    mut report: impl FnMut(CopyStep),
) -> Result<StoreCopy, StoreError> {
    let (mut source, mut target) = (open(from, false)?, open(to, true)?);
    for side in [&mut source, &mut target] {
        check_columns(&side.columns()?)?;
    }
    while source.work_off()? {}
    let progress = target.progress()?;
    let resumed = progress.is_some();
    if !resumed {
        check_empty(&mut *target)?;
        target.begin()?;
    }
    let mut of = 0;
    for table in TABLES {
        of += source.count(table)?;
    }
    let mut rows = 0;
    for table in TABLES {
        let done = progress.as_ref().and_then(|progress| progress.get(table.name)).cloned();
        let copied = copy_table(&mut *source, &mut *target, table, unkeepable, done, |more| {
            report(CopyStep::Copied { rows: rows + more, of });
        })?;
        rows += copied;
    }
    let mut copied = StoreCopy { tables: Vec::new(), left_out: Vec::new(), left_out_count: 0, resumed };
    compare(&mut *source, &mut *target, &mut copied, |rows| {
        report(CopyStep::Verified { rows, of: 2 * of });
    })?;
    target.finish(&source.counters()?)?;
    Ok(copied)
}

impl StoreCopy {
    fn left_out(&mut self, table: &'static TransferTable, row: &TransferRow) {
        self.left_out_count += 1;
        if self.left_out.len() < LEFT_OUT_NAMED_MAX_COUNT {
            let key = encode_key(&row[..table.key_columns_count]);
            self.left_out.push(RowLeftOut { table: table.name, key });
        }
    }
}

fn check_empty(target: &mut dyn TransferSide) -> Result<(), StoreError> {
    for table in TABLES {
        if target.count(table)? > 0 {
            let why =
                "the target holds a store already: name an empty database, or a file that does not exist";
            return Err(StoreError::Conflict(why.to_owned()));
        }
    }
    Ok(())
}

/// Copies the remaining rows of a table; returns its row count then.
fn copy_table(
    source: &mut dyn TransferSide,
    target: &mut dyn TransferSide,
    table: &TransferTable,
    unkeepable: UnkeepableRows,
    done: Option<TableProgress>,
    mut report: impl FnMut(u64),
) -> Result<u64, StoreError> {
    let (mut count, mut after) = (0, None);
    if let Some((rows, last)) = done {
        let key = decode_key(&last);
        after = Some(key.ok_or_else(|| StoreError::Damaged("how far the copy had come".to_owned()))?);
        count = rows;
    }
    loop {
        let mut rows = source.read(table, after.as_deref(), PAGE_MAX_ROWS)?;
        let Some(last) = rows.last() else { return Ok(count) };
        let key = last[..table.key_columns_count].to_vec();
        count += rows.len() as u64;
        if unkeepable == UnkeepableRows::Refuse
            && let Some(row) = rows.iter().find(|row| !can_be_kept(row))
        {
            let key = encode_key(&row[..table.key_columns_count]);
            return Err(StoreError::Conflict(format!(
                "the row {key} of the table {}: {NUL_REFUSED}; copy again with --set-aside to leave such rows out",
                table.name
            )));
        }
        rows.retain(can_be_kept);
        target.write(table, &rows, &(count, encode_key(&key)))?;
        report(count);
        after = Some(key);
    }
}

fn can_be_kept(row: &TransferRow) -> bool {
    !row.iter().any(|value| matches!(value, TransferValue::Text(text) if has_nul(text)))
}

/// Sums both sides up; fails (Conflict) when they differ.
fn compare(
    source: &mut dyn TransferSide,
    target: &mut dyn TransferSide,
    copied: &mut StoreCopy,
    mut report: impl FnMut(u64),
) -> Result<(), StoreError> {
    let mut rows = 0;
    for table in TABLES {
        let theirs = sum_up(source, table, Some(&mut *copied), |more| report(rows + more))?;
        rows += theirs.rows;
        let ours = sum_up(target, table, None, |more| report(rows + more))?;
        rows += ours.rows;
        if theirs != ours {
            return Err(StoreError::Conflict(format!(
                "the table {} differs: {} rows with sum {:016x} were to be copied, {} with sum {:016x} are there; the source was \
                 changed meanwhile: empty the target and begin anew",
                table.name, theirs.rows, theirs.checksum, ours.rows, ours.checksum
            )));
        }
        copied.tables.push((table.name, ours));
    }
    Ok(())
}

/// Sums up the rows of a side that can be kept; notes the others of the source.
fn sum_up(
    side: &mut dyn TransferSide,
    table: &'static TransferTable,
    mut source_of: Option<&mut StoreCopy>,
    mut report: impl FnMut(u64),
) -> Result<TableSum, StoreError> {
    let (mut sum, mut after) = (TableSum::default(), None);
    loop {
        let rows = side.read(table, after.as_deref(), PAGE_MAX_ROWS)?;
        let Some(last) = rows.last() else { return Ok(sum) };
        after = Some(last[..table.key_columns_count].to_vec());
        for row in &rows {
            match &mut source_of {
                Some(copied) if !can_be_kept(row) => copied.left_out(table, row),
                _ => sum.add(row),
            }
        }
        report(sum.rows);
    }
}
