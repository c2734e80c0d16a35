//! The pipeline's steps over the thread that writes, with chunks set aside that the disk cannot read.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use rusqlite::Connection;
use stentor_core::chunk::Ticket;
use stentor_core::id::{AppId, CampaignId, ChunkId, DeviceId, MessageId};
use stentor_core::ledger::{self, Cutting};
use stentor_core::ports::store::{
    Expanded, Expansion, Lease, LeaseReply, LeaseTerms, PendingDelivery, ProducerTask, Receipt, Recovery,
    SettleReply, Started, StoreError, Swept,
};
use stentor_core::settlement::Settlement;
use stentor_core::time::Timestamp;

use super::contents::LeaseCaches;
use super::rows::Rows;
use super::{SqliteParts, SqliteStore, lease, maintenance, pending, receipt_rows, sequences, start};
use crate::sql::{Done, LedgerEngine, Portion, SqlEngine as _, Step, WriteKind};
use crate::sqlite::wal;
use crate::sqlite::writer::CommitPriority;

impl LedgerEngine for SqliteParts {
    type Rows<'a> = Rows<'a>;

    const PRUNED_MAX_COUNT: usize = 256;

    fn rows(connection: &Connection) -> Rows<'_> {
        Rows::new(connection)
    }

    fn start_portion(connection: &Connection) -> Portion<'_> {
        Portion::begin(connection)
    }

    fn begin(connection: &Connection, ids: &[MessageId], cutting: Cutting) -> Done<Started> {
        start::some(connection, ids, cutting)
    }

    fn expand(store: &SqliteStore, task: ProducerTask, how: Expansion) -> Step<'_, Expanded> {
        Box::pin(store.expand_step(task, how))
    }

    fn lease(
        store: &SqliteStore,
        kind: WriteKind,
        chunks: Vec<ChunkId>,
        terms: LeaseTerms,
    ) -> Step<'_, Vec<LeaseReply>> {
        let (messages, prefetch) = (Arc::clone(&store.inner.messages), Arc::clone(&store.inner.prefetch));
        let known = LeaseCaches { messages, prefetch };
        store.inner.write(kind, move |connection| lease::lease(connection, &known, &chunks, terms))
    }

    fn extend(store: &SqliteStore, leases: Vec<Lease>, terms: LeaseTerms) -> Step<'_, ()> {
        Box::pin(store.extend_some(leases, terms))
    }

    fn release(connection: &Connection, leases: &[Lease], due_at: Timestamp) -> Done<Vec<Ticket>> {
        lease::release(connection, leases, due_at)
    }

    fn settle(
        store: &SqliteStore,
        kind: WriteKind,
        settlements: Vec<Settlement>,
    ) -> Step<'_, Vec<SettleReply>> {
        let priority = match kind {
            WriteKind::LedgerFirst => CommitPriority::First,
            _ => CommitPriority::Usual,
        };
        // The writer runs a job once, so that the settlements need no copy.
        Box::pin(store.inner.writer.run(priority, move |connection| lease::settle(connection, settlements)))
    }

    fn set_aside(store: &SqliteStore, chunk: ChunkId, problem: String) -> Step<'_, bool> {
        Box::pin(async move {
            // A disk that refuses all writes is another fault, and none of this chunk.
            store.prove_writing().await.map_err(|_| StoreError::Unreadable(problem))?;
            store.inner.lost.add(chunk);
            Ok(true)
        })
    }

    fn is_set_aside(&self, chunk: ChunkId) -> bool {
        self.lost.has(chunk)
    }

    fn recover(store: &SqliteStore, instance: u64, now: Timestamp) -> Step<'_, (Recovery, Vec<Ticket>)> {
        Box::pin(store.write_around(move |connection, lost| {
            // The number of a start is an id as well, and no other thing gets it.
            sequences::advance(connection, "id", instance)?;
            ledger::recover(&mut Rows::around(connection, lost), instance, now)
        }))
    }

    fn sweep(store: &SqliteStore, limit: usize, now: Timestamp) -> Step<'_, Swept> {
        Box::pin(store.write_around(move |connection, lost| {
            receipt_rows::forget_expired(connection, now, limit)?;
            ledger::sweep(&mut Rows::around(connection, lost), limit, now)
        }))
    }

    fn forget(connection: &Connection, campaigns: &[CampaignId], count: usize) -> Done<usize> {
        maintenance::forget_all(connection, campaigns, count)
    }

    fn keeps(store: &SqliteStore) -> Step<'_, ()> {
        Box::pin(store.inner.writer.keeps(|connection| sequences::probe(connection)))
    }

    fn broken(&self) -> BoxFuture<'_, String> {
        Box::pin(self.writer.ended())
    }

    fn log_bytes(&self) -> u64 {
        wal::size(&self.log)
    }

    fn pending<'a>(
        store: &'a SqliteStore,
        devices: &'a [(AppId, DeviceId)],
        limit: usize,
        now: Timestamp,
    ) -> Step<'a, Vec<Vec<PendingDelivery>>> {
        Box::pin(async move {
            let mut found = Vec::with_capacity(devices.len());
            while let Some(rest) = devices.get(found.len()..).filter(|rest| !rest.is_empty()) {
                let rest = rest.to_vec();
                let some = store.read(move |connection| pending::of_some(connection, &rest, limit, now));
                found.extend(some.await?);
            }
            Ok(found)
        })
    }

    fn receive(connection: &Connection, receipts: &[Receipt], now: Timestamp) -> Done<Vec<bool>> {
        ledger::receive(&mut Rows::new(connection), receipts, now)
    }
}

impl SqliteStore {
    /// Prolongs the leases of a few chunks. One that the disk cannot read must not let all others run out.
    async fn extend_some(&self, some: Vec<Lease>, terms: LeaseTerms) -> Result<(), StoreError> {
        let all = some.clone();
        let together = self.write(move |connection| lease::extend(connection, &all, terms)).await;
        let Err(StoreError::Unreadable(_)) = together else { return together };
        // The disk has lost a chunk that cannot be written while others can; its lease may run out.
        let mut worked = some.len() == 1 && self.prove_writing().await.is_ok();
        for one in some.iter().copied().filter(|_| some.len() > 1) {
            worked |= self.write(move |connection| lease::extend(connection, &[one], terms)).await.is_ok();
        }
        if worked { Ok(()) } else { together }
    }
}

#[cfg(test)]
mod tests;
