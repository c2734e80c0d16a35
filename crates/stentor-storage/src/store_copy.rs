//! A store's rows from one engine to another, in either direction: a page in each transaction, so that a copy that was broken off goes on
//! where it was; at the end both sides are counted and summed up.

use stentor_core::ports::store::StoreError;

use crate::store_place::{StorePlace, open};
pub use crate::transfer::TableSum;
use crate::transfer::{
    TABLES, TableProgress, TransferSide, TransferTable, check_columns, decode_key, encode_key,
};

/// Rows that are read at once and written in one transaction.
const PAGE_MAX_ROWS: usize = 4_096;

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyStep {
    /// So many rows of all are copied.
    Copied {
        /// Rows so far, those of an earlier run among them.
        rows: u64,
        /// Rows that there are.
        of: u64,
    },
    /// So many rows of both sides are summed up.
    Verified {
        /// Rows so far.
        rows: u64,
        /// Rows that there are.
        of: u64,
    },
}

/// What was copied, and that both sides have the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreCopy {
    /// Each table and its sum, in the order of the copy.
    pub tables: Vec<(&'static str, TableSum)>,
    /// Whether an earlier run had begun it.
    pub resumed: bool,
}

/// Copies all that a store keeps into an empty one, or goes on where an earlier run was broken off, and compares both.
///
/// Refuses (Conflict) a side that is in use, a target that holds a store, and two sides that differ at the end. What it does not
/// copy are the keys: they are no part of a store.
pub fn copy_store(
    from: &StorePlace,
    to: &StorePlace,
    mut report: impl FnMut(CopyStep),
) -> Result<StoreCopy, StoreError> {
    let (mut source, mut target) = (open(from, false)?, open(to, true)?);
    for side in [&mut source, &mut target] {
        check_columns(&side.columns()?)?;
    }
    source.work_off()?;
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
        let copied = copy_table((&mut *source, &mut *target), table, done, |more| {
            report(CopyStep::Copied { rows: rows + more, of });
        })?;
        rows += copied;
    }
    let tables =
        compare((&mut *source, &mut *target), |rows| report(CopyStep::Verified { rows, of: 2 * of }))?;
    target.finish(&source.counters()?)?;
    Ok(StoreCopy { tables, resumed })
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

/// Copies what is left of a table; returns how many rows it has then.
fn copy_table(
    (source, target): (&mut dyn TransferSide, &mut dyn TransferSide),
    table: &TransferTable,
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
        let rows = source.read(table, after.as_deref(), PAGE_MAX_ROWS)?;
        let Some(last) = rows.last() else { return Ok(count) };
        let key = last[..table.key_columns_count].to_vec();
        count += rows.len() as u64;
        target.write(table, &rows, &(count, encode_key(&key)))?;
        report(count);
        after = Some(key);
    }
}

/// Sums both sides up; fails (Conflict) when they differ.
fn compare(
    (source, target): (&mut dyn TransferSide, &mut dyn TransferSide),
    mut report: impl FnMut(u64),
) -> Result<Vec<(&'static str, TableSum)>, StoreError> {
    let (mut tables, mut rows) = (Vec::with_capacity(TABLES.len()), 0);
    for table in TABLES {
        let theirs = sum_up(source, table, |more| report(rows + more))?;
        rows += theirs.rows;
        let ours = sum_up(target, table, |more| report(rows + more))?;
        rows += ours.rows;
        if theirs != ours {
            return Err(StoreError::Conflict(format!(
                "the table {} differs: {} rows with sum {:016x} were to be copied, {} with sum {:016x} are there; the source was \
                 changed meanwhile: empty the target and begin anew",
                table.name, theirs.rows, theirs.checksum, ours.rows, ours.checksum
            )));
        }
        tables.push((table.name, ours));
    }
    Ok(tables)
}

fn sum_up(
    side: &mut dyn TransferSide,
    table: &TransferTable,
    mut report: impl FnMut(u64),
) -> Result<TableSum, StoreError> {
    let (mut sum, mut after) = (TableSum::default(), None);
    loop {
        let rows = side.read(table, after.as_deref(), PAGE_MAX_ROWS)?;
        let Some(last) = rows.last() else { return Ok(sum) };
        after = Some(last[..table.key_columns_count].to_vec());
        for row in &rows {
            sum.add(row);
        }
        report(sum.rows);
    }
}
