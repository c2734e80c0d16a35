//! What waits for the gateway's devices, and what they confirm.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::Connection;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::ledger;
use stentor_core::ports::store::{PendingDelivery, Receipt, ReceiptStore, StoreError};
use stentor_core::time::Timestamp;

use super::rows::Rows;
use super::{SqliteStore, pending};

/// Receipts that one transaction writes chunk by chunk.
const APART_MAX_COUNT: usize = 256;

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
        let receipts: Arc<[Receipt]> = receipts.into();
        let all = Arc::clone(&receipts);
        match self.write(move |connection| ledger::receive(&mut Rows::new(connection), &all, now)).await {
            Err(error) if !error.is_of_the_engine() => self.receive_apart(&receipts, now).await,
            done => done,
        }
    }
}

impl SqliteStore {
    /// Writes receipts of which some meet damage.
    async fn receive_apart(&self, receipts: &[Receipt], now: Timestamp) -> Result<Vec<bool>, StoreError> {
        let mut replies = Vec::with_capacity(receipts.len());
        for some in receipts.chunks(APART_MAX_COUNT) {
            let some = some.to_vec();
            let work =
                move |connection: &Connection| ledger::receive_apart(&mut Rows::new(connection), &some, now);
            replies.extend(self.write(work).await?);
        }
        Ok(replies)
    }
}
