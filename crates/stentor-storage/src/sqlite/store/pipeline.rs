use std::sync::Arc;

use crate::sqlite::wal;
use async_trait::async_trait;
use rusqlite::Connection;
use stentor_core::chunk::{Class, Ticket};
use stentor_core::id::ChunkId;
use stentor_core::ports::clock::Timestamp;
use stentor_core::ports::store::{
    Expanded, Expansion, Lease, LeaseReply, PipelineStore, ProducerTask, Recovery, SettleReply, StoreError,
    Swept,
};
use stentor_core::settlement::Settlement;

use super::chunks::{self, Chunk};
use super::lease::Known;
use super::{SqliteStore, aside, expand, lease, sequences, settle, start, upkeep};

/// Settlements of no more deliveries than this go first: they are single messages', or done at once.
const SMALL_MAX_DELIVERIES: usize = 64;

#[async_trait]
impl PipelineStore for SqliteStore {
    async fn start_due(
        &self,
        limit: usize,
        chunk_max_devices: usize,
        now: Timestamp,
    ) -> Result<Vec<Ticket>, StoreError> {
        self.write(move |connection| start::due(connection, limit, chunk_max_devices, now)).await
    }

    async fn producers(&self) -> Result<Vec<ProducerTask>, StoreError> {
        self.read_walk(expand::tasks).await
    }

    async fn expand(&self, task: ProducerTask, how: Expansion) -> Result<Expanded, StoreError> {
        self.expand_step(task, how).await
    }

    async fn lease(&self, chunks: &[ChunkId], lease: Lease) -> Result<Vec<LeaseReply>, StoreError> {
        let (chunks, messages) = (chunks.to_vec(), Arc::clone(&self.inner.messages));
        let ahead = Arc::clone(&self.inner.ahead);
        let work = move |connection: &Connection| {
            let known = Known { messages: &messages, ahead: &ahead };
            lease::lease(connection, &known, &chunks, lease)
        };
        if lease.class == Class::Urgent { self.write_first(work).await } else { self.write(work).await }
    }

    async fn extend(&self, chunks: &[(ChunkId, u32)], lease: Lease) -> Result<(), StoreError> {
        let chunks = chunks.to_vec();
        self.write(move |connection| lease::extend(connection, &chunks, lease)).await
    }

    async fn release(&self, chunks: &[(ChunkId, u32)], due_at: Timestamp) -> Result<Vec<Ticket>, StoreError> {
        let chunks = chunks.to_vec();
        self.write(move |connection| lease::release(connection, &chunks, due_at)).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleReply>, StoreError> {
        let deliveries: usize = settlements.iter().map(|settlement| settlement.records.len()).sum();
        let work = move |connection: &Connection| settle::all(connection, settlements);
        let is_small = deliveries <= SMALL_MAX_DELIVERIES;
        if is_small { self.write_first(work).await } else { self.write(work).await }
    }

    async fn set_aside(
        &self,
        chunk: ChunkId,
        epoch: Option<u32>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.write(move |connection| aside::set_aside(connection, chunk, epoch, now)).await
    }

    async fn set_aside_count(&self) -> Result<u64, StoreError> {
        self.read(aside::count).await
    }

    async fn log_bytes(&self) -> Result<u64, StoreError> {
        Ok(wal::size(&self.inner.log))
    }

    async fn recover(&self, instance: u64, now: Timestamp) -> Result<Recovery, StoreError> {
        self.write(move |connection| {
            sequences::advance(connection, "id", instance)?;
            upkeep::recover(connection, instance, now)
        })
        .await
    }

    async fn queued(&self, after: ChunkId, limit: usize) -> Result<Vec<Ticket>, StoreError> {
        self.read_walk(move |connection| {
            let queued = chunks::queued_after(connection, after, limit)?;
            Ok(queued.iter().map(Chunk::ticket).collect())
        })
        .await
    }

    async fn sweep(&self, limit: usize, now: Timestamp) -> Result<Swept, StoreError> {
        self.write(move |connection| upkeep::sweep(connection, limit, now)).await
    }

    async fn prune(
        &self,
        ended_before: Timestamp,
        replies_before: Timestamp,
        limit: usize,
    ) -> Result<u64, StoreError> {
        self.write(move |connection| upkeep::prune(connection, ended_before, replies_before, limit)).await
    }
}
