//! What waits for the gateway's devices, and what they confirm.

use crate::postgres::engine::Connection;
use async_trait::async_trait;
use stentor_core::id::{AppId, ChunkId, DeviceId};
use stentor_core::ledger::{self, LedgerCache};
use stentor_core::ports::store::{PendingDelivery, Receipt, ReceiptStore, StoreError};
use stentor_core::time::Timestamp;

use super::prefetched_rows::PrefetchedRows;
use super::rows::LedgerConnection;
use super::{PostgresStore, pending};
use crate::postgres::fault::Done;

#[async_trait]
impl ReceiptStore for PostgresStore {
    async fn pending(
        &self,
        devices: &[(AppId, DeviceId)],
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<Vec<PendingDelivery>>, StoreError> {
        let devices = devices.to_vec();
        self.read(move |connection| pending::of_all(connection, &devices, limit, now)).await
    }

    async fn receive(&self, receipts: Vec<Receipt>, now: Timestamp) -> Result<Vec<bool>, StoreError> {
        self.write(move |connection| receive(connection, &receipts, now)).await
    }
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
