//! The pipeline's steps, with rows read and written together, and for one of several nodes.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use stentor_core::chunk::Ticket;
use stentor_core::id::{AppId, CampaignId, ChunkId, DeviceId, MessageId};
use stentor_core::ledger::{self, Cutting};
use stentor_core::ports::store::{
    Expanded, Expansion, Lease, LeaseReply, LeaseTerms, PendingDelivery, ProducerTask, Receipt, Recovery,
    SettleReply, Started, Swept,
};
use stentor_core::settlement::Settlement;
use stentor_core::time::Timestamp;

use super::prefetched_rows::PrefetchedRows;
use super::rows::Rows;
use super::{
    PostgresParts, PostgresStore, chunk_writes, lease, maintenance, nodes, pending, receipt_rows, sequences,
    start,
};
use crate::postgres::engine::Connection;
use crate::sql::{Done, LedgerEngine, Portion, SqlEngine as _, Step, WriteKind, int};

impl LedgerEngine for PostgresParts {
    type Rows<'a> = Rows<'a>;

    /// Some ten milliseconds.
    const PRUNED_MAX_COUNT: usize = 1_024;

    fn rows(connection: &Connection) -> Rows<'_> {
        Rows::new(connection)
    }

    fn start_portion(connection: &Connection) -> Portion<'_> {
        start::portion(connection)
    }

    fn begin(connection: &Connection, ids: &[MessageId], cutting: Cutting) -> Done<Started> {
        start::some(connection, ids, cutting)
    }

    fn expand(store: &PostgresStore, task: ProducerTask, how: Expansion) -> Step<'_, Expanded> {
        Box::pin(store.expand_step(task, how))
    }

    fn lease(
        store: &PostgresStore,
        kind: WriteKind,
        chunks: Vec<ChunkId>,
        terms: LeaseTerms,
    ) -> Step<'_, Vec<LeaseReply>> {
        let (known, own) = (Arc::clone(&store.inner.messages), store.inner.own.get());
        store.inner.write(kind, move |connection| lease::lease(connection, &known, own, &chunks, terms))
    }

    fn extend(store: &PostgresStore, leases: Vec<Lease>, terms: LeaseTerms) -> Step<'_, ()> {
        store.write(move |connection| chunk_writes::extend(connection, &leases, terms))
    }

    fn release(connection: &Connection, leases: &[Lease], due_at: Timestamp) -> Done<Vec<Ticket>> {
        lease::release(connection, leases, due_at)
    }

    fn settle(
        store: &PostgresStore,
        kind: WriteKind,
        settlements: Vec<Settlement>,
    ) -> Step<'_, Vec<SettleReply>> {
        let own = store.inner.own.get();
        store.inner.write(kind, move |connection| lease::settle(connection, &settlements, own))
    }

    fn recover(store: &PostgresStore, instance: u64, now: Timestamp) -> Step<'_, (Recovery, Vec<Ticket>)> {
        let has_joined = store.inner.own.get().is_some();
        store.write(move |connection| {
            // The number of a start is an id as well, and no other thing gets it.
            sequences::advance(connection, "id", instance)?;
            let mut rows = Rows::new(connection);
            // Alone, each lease is of a former process; among others, only those without a living node.
            if !has_joined {
                return ledger::recover(&mut rows, instance, now);
            }
            ledger::release_dead(&mut rows, &nodes::orphans(connection)?, now)
        })
    }

    fn sweep(store: &PostgresStore, limit: usize, now: Timestamp) -> Step<'_, Swept> {
        let own = store.inner.own.get();
        store.write(move |connection| {
            receipt_rows::forget_expired(connection, now, limit)?;
            ledger::sweep(&mut Rows::of(connection, own), limit, now)
        })
    }

    fn forget(connection: &Connection, campaigns: &[CampaignId], count: usize) -> Done<usize> {
        let campaigns: Vec<i64> = campaigns.iter().map(|id| int(id.raw())).collect();
        maintenance::forget(connection, &campaigns, count)
    }

    fn keeps(store: &PostgresStore) -> Step<'_, ()> {
        Box::pin(store.prove_writing())
    }

    fn broken(&self) -> BoxFuture<'_, String> {
        // A server that is lost may come back, with all that it kept.
        Box::pin(std::future::pending())
    }

    fn pending<'a>(
        store: &'a PostgresStore,
        devices: &'a [(AppId, DeviceId)],
        limit: usize,
        now: Timestamp,
    ) -> Step<'a, Vec<Vec<PendingDelivery>>> {
        let devices = devices.to_vec();
        store.read(move |connection| pending::of_all(connection, &devices, limit, now))
    }

    fn receive(connection: &Connection, receipts: &[Receipt], now: Timestamp) -> Done<Vec<bool>> {
        let mut ids: Vec<ChunkId> = receipts.iter().map(|receipt| receipt.chunk).collect();
        ids.sort_unstable();
        ids.dedup();
        let read = PrefetchedRows::of_chunks(connection, &ids)?.with_standings(connection)?;
        let read = read.with_records(connection)?;
        Rows::new(connection).having_read(read).batch(|rows| ledger::receive(rows, receipts, now))
    }
}
