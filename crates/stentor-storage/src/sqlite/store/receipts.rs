//! What waits for the gateway's devices, and what they confirm.

use async_trait::async_trait;
use rusqlite::Connection;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::ledger::{self, LedgerCache};
use stentor_core::ports::store::{PendingDelivery, Receipt, ReceiptStore, StoreError};
use stentor_core::time::Timestamp;

use super::rows::Rows;
use super::{SqliteStore, pending};
use crate::sqlite::fault::Done;

#[async_trait]
impl ReceiptStore for SqliteStore {
    async fn pending(
        &self,
        devices: &[(AppId, DeviceId)],
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<Vec<PendingDelivery>>, StoreError> {
        let mut found = Vec::with_capacity(devices.len());
        while let Some(rest) = devices.get(found.len()..).filter(|rest| !rest.is_empty()) {
            let rest = rest.to_vec();
            found.extend(self.read(move |connection| pending::of_some(connection, &rest, limit, now)).await?);
        }
        Ok(found)
    }

    async fn receive(&self, receipts: Vec<Receipt>, now: Timestamp) -> Result<Vec<bool>, StoreError> {
        self.write(move |connection| receive(connection, &receipts, now)).await
    }
}

/// Writes receipts, those of one chunk together.
fn receive(connection: &Connection, receipts: &[Receipt], now: Timestamp) -> Done<Vec<bool>> {
    let mut order: Vec<usize> = (0..receipts.len()).collect();
    // Those of a chunk side by side: its records are then read and written once.
    order.sort_by_key(|at| receipts[*at].chunk);
    let mut rows = Rows::new(connection);
    let mut ledger = LedgerCache::new(&mut rows);
    let mut replies = vec![false; receipts.len()];
    for same in order.chunk_by(|a, b| receipts[*a].chunk == receipts[*b].chunk) {
        let some: Vec<Receipt> = same.iter().map(|at| receipts[*at]).collect();
        for (at, changed) in same.iter().zip(ledger::receive(&mut ledger, &some)?) {
            replies[*at] = changed;
        }
    }
    ledger.close(now)?;
    Ok(replies)
}
