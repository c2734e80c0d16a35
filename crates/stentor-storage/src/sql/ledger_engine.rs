//! Parts of the pipeline in which the engines differ: one batches rows, the other reads ahead and works around a bad disk.

use futures_util::future::BoxFuture;
use stentor_core::chunk::Ticket;
use stentor_core::id::{AppId, CampaignId, ChunkId, DeviceId, MessageId};
use stentor_core::ledger::{Cutting, LedgerRows};
use stentor_core::ports::store::{
    Expanded, Expansion, Lease, LeaseReply, LeaseTerms, PendingDelivery, ProducerTask, Receipt, Recovery,
    SettleReply, Started, StoreError, Swept,
};
use stentor_core::settlement::Settlement;
use stentor_core::time::Timestamp;

use super::engine::{SqlEngine, SqlStore, WriteKind};
use super::error::{Done, SqlError};
use super::portion::Portion;

/// The result of a step of the pipeline.
pub(crate) type Step<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// An engine that keeps the ledger.
pub(crate) trait LedgerEngine: SqlEngine + Sized {
    /// The rows of the ledger within one transaction.
    type Rows<'a>: LedgerRows<Error = SqlError>;

    /// Most rows that one transaction prunes.
    const PRUNED_MAX_COUNT: usize;

    /// Returns the rows of a transaction.
    fn rows(connection: &Self::Connection) -> Self::Rows<'_>;

    /// Begins the portion of a transaction that starts campaigns.
    fn start_portion(connection: &Self::Connection) -> Portion<'_>;

    /// Starts campaigns for as long as a transaction may last.
    fn begin(connection: &Self::Connection, ids: &[MessageId], cutting: Cutting) -> Done<Started>;

    /// Expands a step of an audience.
    fn expand(store: &SqlStore<Self>, task: ProducerTask, how: Expansion) -> Step<'_, Expanded>;

    /// Leases chunks.
    fn lease(
        store: &SqlStore<Self>,
        kind: WriteKind,
        chunks: Vec<ChunkId>,
        terms: LeaseTerms,
    ) -> Step<'_, Vec<LeaseReply>>;

    /// Prolongs leases in one transaction.
    fn extend(store: &SqlStore<Self>, leases: Vec<Lease>, terms: LeaseTerms) -> Step<'_, ()>;

    /// Releases chunks of which nothing was sent.
    fn release(connection: &Self::Connection, leases: &[Lease], due_at: Timestamp) -> Done<Vec<Ticket>>;

    /// Writes settlements in one transaction.
    fn settle(
        store: &SqlStore<Self>,
        kind: WriteKind,
        settlements: Vec<Settlement>,
    ) -> Step<'_, Vec<SettleReply>>;

    /// Handles a chunk that the disk cannot read; returns true if the chunk is out of the way.
    fn set_aside(_store: &SqlStore<Self>, _chunk: ChunkId, problem: String) -> Step<'_, bool> {
        Box::pin(async { Err(StoreError::Unreadable(problem)) })
    }

    /// Returns true if the chunk was set aside.
    fn is_set_aside(&self, _chunk: ChunkId) -> bool {
        false
    }

    /// Releases the leases of processes that have ended.
    fn recover(store: &SqlStore<Self>, instance: u64, now: Timestamp) -> Step<'_, (Recovery, Vec<Ticket>)>;

    /// Ends expired chunks and leases, at most `limit` of each.
    fn sweep(store: &SqlStore<Self>, limit: usize, now: Timestamp) -> Step<'_, Swept>;

    /// Deletes chunks of ended campaigns, and the rest of each campaign of which no chunk is left; returns the number of rows, at most `count`.
    fn forget(connection: &Self::Connection, campaigns: &[CampaignId], count: usize) -> Done<usize>;

    /// Fails if the store cannot durably store writes now.
    fn keeps(store: &SqlStore<Self>) -> Step<'_, ()>;

    /// Waits until the store can write no more; returns the reason.
    fn broken(&self) -> BoxFuture<'_, String>;

    /// Returns the bytes of the write-ahead log, or 0 if a server manages it.
    fn log_bytes(&self) -> u64 {
        0
    }

    /// Lists pending deliveries of devices of the gateway, one list per device.
    fn pending<'a>(
        store: &'a SqlStore<Self>,
        devices: &'a [(AppId, DeviceId)],
        limit: usize,
        now: Timestamp,
    ) -> Step<'a, Vec<Vec<PendingDelivery>>>;

    /// Writes receipts; returns for each whether it was new.
    fn receive(connection: &Self::Connection, receipts: &[Receipt], now: Timestamp) -> Done<Vec<bool>>;
}
