//! What waits for the gateway's devices, and what they confirm.

use std::sync::Arc;

use crate::postgres::engine::Connection;
use async_trait::async_trait;
use stentor_core::id::{AppId, ChunkId, DeviceId};
use stentor_core::ledger;
use stentor_core::ports::store::{PendingDelivery, Receipt, ReceiptStore, StoreError};
use stentor_core::time::Timestamp;

use super::prefetched_rows::PrefetchedRows;
use super::rows::Rows;
use super::{PostgresStore, pending};
use crate::sql::Done;

/// Receipts that one transaction writes chunk by chunk.
const APART_MAX_COUNT: usize = 256;

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
        let receipts: Arc<[Receipt]> = receipts.into();
        let all = Arc::clone(&receipts);
        match self.write(move |connection| receive(connection, &all, now)).await {
            Err(error) if !error.is_of_the_engine() => self.receive_apart(&receipts, now).await,
            done => done,
        }
    }
}

impl PostgresStore {
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

/// Writes receipts, with all their rows read at once.
fn receive(connection: &Connection, receipts: &[Receipt], now: Timestamp) -> Done<Vec<bool>> {
    let mut ids: Vec<ChunkId> = receipts.iter().map(|receipt| receipt.chunk).collect();
    ids.sort_unstable();
    ids.dedup();
    let read =
        PrefetchedRows::of_chunks(connection, &ids)?.with_standings(connection)?.with_records(connection)?;
    Rows::new(connection).having_read(read).batch(|rows| ledger::receive(rows, receipts, now))
}
