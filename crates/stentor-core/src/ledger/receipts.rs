//! What devices confirm of deliveries that were accepted.

use super::LedgerCache;
use super::rows::LedgerRows;
use crate::chunk::ChunkState;
use crate::delivery::Record;
use crate::id::DeviceId;
use crate::ports::store::{Receipt, ReceiptKind};

/// Writes receipts for deliveries of one chunk; returns for each whether it changed anything. One for a delivery that awaits none
/// (confirmed before, replaced, never accepted, or of a device that the chunk has not) changes nothing.
pub fn receive<R: LedgerRows>(
    ledger: &mut LedgerCache<'_, R>,
    receipts: &[Receipt],
) -> Result<Vec<bool>, R::Error> {
    let nothing = || vec![false; receipts.len()];
    let Some(first) = receipts.first() else { return Ok(nothing()) };
    let chunk = ledger.rows.chunk(first.chunk)?;
    let awaits =
        chunk.filter(|chunk| chunk.state == ChunkState::Settled && chunk.lane.provider.has_receipts());
    let Some(chunk) = awaits else { return Ok(nothing()) };
    let devices = ledger.rows.devices(&chunk)?;
    let mut records = ledger.rows.records(&chunk)?;
    let (mut changed, mut delivered) = (Vec::with_capacity(receipts.len()), 0);
    for receipt in receipts {
        let is_meant = receipt.chunk == chunk.id;
        let after = place(&devices, &mut records, receipt.device).filter(|_| is_meant);
        let written = after.and_then(|record| write(record, receipt.kind));
        delivered += u64::from(written.is_some_and(Record::is_delivered));
        changed.push(written.is_some());
    }
    if changed.contains(&true) {
        ledger.open(chunk.campaign, chunk.lane.provider)?.confirm(delivered)?;
        ledger.rows.write_records(&chunk, &records)?;
        // Or every device that connects would look through this chunk until its campaign expires.
        if !records.iter().any(|record| record.awaits_receipt()) {
            ledger.rows.write_awaits_receipts(&chunk, false)?;
        }
    }
    Ok(changed)
}

fn place<'a>(devices: &[DeviceId], records: &'a mut [Record], device: DeviceId) -> Option<&'a mut Record> {
    records.get_mut(devices.binary_search(&device).ok()?)
}

/// Changes a record that awaits a receipt; returns it as it is then.
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
