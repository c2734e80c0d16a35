//! Receipts: confirmations by devices of accepted deliveries.

use super::LedgerCache;
use super::rows::{Damaged, LedgerRows};
use crate::chunk::ChunkState;
use crate::delivery::Record;
use crate::id::{ChunkId, DeviceId};
use crate::ports::store::{Receipt, ReceiptKind};
use crate::time::Timestamp;

/// Writes receipts of any chunks; returns for each whether it changed anything. A receipt changes nothing if its delivery awaits none:
/// confirmed before, replaced, never accepted, or of a device outside the chunk.
pub fn receive<R: LedgerRows>(
    rows: &mut R,
    receipts: &[Receipt],
    now: Timestamp,
) -> Result<Vec<bool>, R::Error> {
    let mut ledger = LedgerCache::new(rows);
    let replies = by_chunk(receipts, |_, some| of_chunk(&mut ledger, some))?;
    ledger.close(now)?;
    Ok(replies)
}

/// Writes receipts like [`receive`], but each chunk separately: damage of one chunk does not prevent the receipts of the others.
pub fn receive_apart<R: LedgerRows>(
    rows: &mut R,
    receipts: &[Receipt],
    now: Timestamp,
) -> Result<Vec<bool>, R::Error> {
    by_chunk(receipts, |chunk, some| match rows.attempt(|rows| receive(rows, some, now))? {
        Ok(changed) => Ok(changed),
        Err(error) => {
            rows.note_damage(Damaged::Chunk(chunk), &error);
            record_alone(rows, chunk, some)
        }
    })
}

/// Records the receipts of a chunk with damaged books, so that its devices do not get the messages again. Only its records are written or,
/// if they are damaged as well, the chunk is unmarked as awaiting receipts.
fn record_alone<R: LedgerRows>(rows: &mut R, id: ChunkId, some: &[Receipt]) -> Result<Vec<bool>, R::Error> {
    let recorded = rows.attempt(|rows| {
        let Some(mut settled) = SettledRecords::read(rows, some)? else { return Ok(()) };
        settled.note(some);
        settled.write(rows)
    })?;
    if recorded.is_err() {
        rows.write_awaits_receipts(id, false)?;
    }
    Ok(vec![false; some.len()])
}

/// Passes the receipts of each chunk to `work`, and returns its replies in the order of the receipts.
fn by_chunk<E>(
    receipts: &[Receipt],
    mut work: impl FnMut(ChunkId, &[Receipt]) -> Result<Vec<bool>, E>,
) -> Result<Vec<bool>, E> {
    let mut order: Vec<usize> = (0..receipts.len()).collect();
    // Grouped by chunk: its records are then read and written once.
    order.sort_by_key(|at| receipts[*at].chunk);
    let mut replies = vec![false; receipts.len()];
    for same in order.chunk_by(|a, b| receipts[*a].chunk == receipts[*b].chunk) {
        let some: Vec<Receipt> = same.iter().map(|at| receipts[*at]).collect();
        for (at, changed) in same.iter().zip(work(some[0].chunk, &some)?) {
            replies[*at] = changed;
        }
    }
    Ok(replies)
}

/// Writes receipts for deliveries of one chunk.
fn of_chunk<R: LedgerRows>(
    ledger: &mut LedgerCache<'_, R>,
    receipts: &[Receipt],
) -> Result<Vec<bool>, R::Error> {
    let Some(mut settled) = SettledRecords::read(ledger.rows, receipts)? else {
        return Ok(vec![false; receipts.len()]);
    };
    let (changed, delivered) = settled.note(receipts);
    if changed.contains(&true) {
        let chunk = &settled.chunk;
        ledger.open(chunk.campaign, chunk.lane.provider)?.confirm(delivered)?;
        settled.write(ledger.rows)?;
    }
    Ok(changed)
}

/// A settled chunk for which devices may send receipts.
struct SettledRecords<R: LedgerRows> {
    chunk: R::Chunk,
    devices: Vec<DeviceId>,
    records: Vec<Record>,
}

impl<R: LedgerRows> SettledRecords<R> {
    /// Reads the chunk of some receipts; `None` if it awaits none.
    fn read(rows: &R, receipts: &[Receipt]) -> Result<Option<Self>, R::Error> {
        let Some(first) = receipts.first() else { return Ok(None) };
        let chunk = rows.chunk(first.chunk)?;
        let awaits =
            chunk.filter(|chunk| chunk.state == ChunkState::Settled && chunk.lane.provider.has_receipts());
        let Some(chunk) = awaits else { return Ok(None) };
        let (devices, records) = (rows.devices(&chunk)?, rows.records(&chunk)?);
        Ok(Some(Self { chunk, devices, records }))
    }

    /// Updates the records; returns for each receipt whether it changed one, and the number of newly confirmed deliveries.
    fn note(&mut self, receipts: &[Receipt]) -> (Vec<bool>, u64) {
        let (mut changed, mut delivered) = (Vec::with_capacity(receipts.len()), 0);
        for receipt in receipts {
            let record = place(&self.devices, &mut self.records, receipt.device);
            let written = record.and_then(|record| write(record, receipt.kind));
            delivered += u64::from(written.is_some_and(Record::is_delivered));
            changed.push(written.is_some());
        }
        (changed, delivered)
    }

    fn write(&self, rows: &mut R) -> Result<(), R::Error> {
        rows.write_records(&self.chunk, &self.records)?;
        // Otherwise every device that connects would read this chunk until its campaign expires.
        if !self.records.iter().any(|record| record.awaits_receipt()) {
            rows.write_awaits_receipts(self.chunk.id, false)?;
        }
        Ok(())
    }
}

fn place<'a>(devices: &[DeviceId], records: &'a mut [Record], device: DeviceId) -> Option<&'a mut Record> {
    records.get_mut(devices.binary_search(&device).ok()?)
}

/// Updates a record that awaits a receipt; returns the new record.
fn write(record: &mut Record, kind: ReceiptKind) -> Option<Record> {
    if !record.awaits_receipt() {
        return None;
    }
    *record = match kind {
        ReceiptKind::Delivered => record.delivered()?,
        ReceiptKind::Dropped(reason) => Record::new(record.state(), reason, record.is_ambiguous()),
    };
    Some(*record)
}
