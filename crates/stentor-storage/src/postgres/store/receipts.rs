//! What waits for the gateway's devices, and what they confirm.

use crate::postgres::engine::{Connection, Row, params};
use async_trait::async_trait;
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId, DeviceId, MessageId};
use stentor_core::ledger::{self, LedgerCache};
use stentor_core::ports::store::{PendingDelivery, Receipt, ReceiptStore, StoreError};
use stentor_core::time::Timestamp;

use super::chunks::{self, LEVELS};
use super::codes::{CANCELED, PAUSED};
use super::prefetched_rows::PrefetchedRows;
use super::rows::LedgerConnection;
use super::{PostgresStore, app_providers, receipt_rows};
use crate::postgres::damage::readable;
use crate::postgres::fault::Done;
use crate::postgres::row::{int, number, time};

#[async_trait]
impl ReceiptStore for PostgresStore {
    async fn pending(
        &self,
        app: AppId,
        device: DeviceId,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<PendingDelivery>, StoreError> {
        self.read(move |connection| pending(connection, (app, device), limit, now)).await
    }

    async fn receive(&self, receipts: Vec<Receipt>, now: Timestamp) -> Result<Vec<bool>, StoreError> {
        self.write(move |connection| receive(connection, &receipts, now)).await
    }
}

fn pending(
    connection: &Connection,
    (app, device): (AppId, DeviceId),
    max: usize,
    now: Timestamp,
) -> Done<Vec<PendingDelivery>> {
    let Some(fleet) = app_providers::find(connection, app, ProviderKind::Gateway)? else {
        return Ok(Vec::new());
    };
    let sql = format!(
        "SELECT c.id, c.message, c.receipts_until, c.devices, c.records, k.state = {PAUSED} FROM chunks c
        JOIN campaigns k ON k.id = c.message WHERE c.receipts_until IS NOT NULL AND c.fleet = $1 AND c.level = $2
        AND c.last BETWEEN $3 AND $4 AND c.first <= $3 AND c.receipts_until > $5 AND k.state <> {CANCELED} ORDER BY c.id"
    );
    let id = int(device.raw());
    let mut found = Vec::new();
    for level in 0..LEVELS {
        let farthest = id.saturating_add((1 << level) - 1);
        let values = params![int(fleet.no), level, id, farthest, now.as_millis()];
        let read = |row: &Row<'_>| awaiting(row, device);
        found.extend(
            readable(connection, "chunks", (&sql, values), usize::MAX, read)?.0.into_iter().flatten(),
        );
    }
    found.sort_unstable_by_key(|one: &PendingDelivery| (one.message, one.chunk));
    found.dedup_by_key(|one| one.message);
    found.truncate(max);
    Ok(found)
}

/// Reads a chunk; nothing if the device is not in it, or awaits nothing.
fn awaiting(row: &Row<'_>, device: DeviceId) -> Done<Option<PendingDelivery>> {
    let devices = chunks::decode(row, 3)?;
    let Ok(position) = devices.binary_search(&device) else { return Ok(None) };
    let records = receipt_rows::decode(row, 4, devices.len())?;
    if !records.get(position).is_some_and(|record| record.awaits_receipt()) {
        return Ok(None);
    }
    Ok(Some(PendingDelivery {
        message: MessageId::from_raw(number(row, 1)?),
        chunk: ChunkId::from_raw(number(row, 0)?),
        expires_at: time(row, 2)?,
        is_paused: row.get(5)?,
    }))
}

/// Writes receipts, those of one chunk together.
fn receive(connection: &Connection, receipts: &[Receipt], now: Timestamp) -> Done<Vec<bool>> {
    let mut order: Vec<usize> = (0..receipts.len()).collect();
    order.sort_by_key(|at| receipts[*at].chunk);
    let mut ids: Vec<ChunkId> = receipts.iter().map(|receipt| receipt.chunk).collect();
    ids.sort_unstable();
    ids.dedup();
    let read =
        PrefetchedRows::of_chunks(connection, &ids)?.with_standings(connection)?.with_records(connection)?;
    LedgerConnection::new(connection).having_read(read).batch(|rows| {
        let mut ledger = LedgerCache::new(rows);
        let mut replies = vec![false; receipts.len()];
        for same in order.chunk_by(|a, b| receipts[*a].chunk == receipts[*b].chunk) {
            let some: Vec<Receipt> = same.iter().map(|at| receipts[*at]).collect();
            for (at, changed) in same.iter().zip(ledger::receive(&mut ledger, &some)?) {
                replies[*at] = changed;
            }
        }
        ledger.close(now)?;
        Ok(replies)
    })
}
