use std::sync::Arc;

use crate::postgres::engine::Connection;
use async_trait::async_trait;
use stentor_core::chunk::{Ticket, TrafficClass};
use stentor_core::id::ChunkId;
use stentor_core::ledger;
use stentor_core::ports::store::{
    Expanded, Expansion, Lease, LeaseReply, LeaseTerms, PipelineStore, ProducerTask, Recovery, SettleReply,
    Started, StoreError, StoreFigures, Swept,
};
use stentor_core::settlement::Settlement;
use stentor_core::time::Timestamp;

use super::chunk_writes;
use super::chunks::{self, ChunkRow};
use super::rows::Rows;
use super::{
    PostgresStore, books, campaigns, lease, leftovers, maintenance, node_events, nodes, producers,
    receipt_rows, sequences, start, unlisted,
};
use crate::sql::{Done, Portion, int};

/// Settlements of no more deliveries than this go first: they are single messages', or done at once.
const SMALL_MAX_DELIVERIES: usize = 64;
/// Changes of devices that settlements make in one transaction, unless a single one makes more.
const CHANGES_MAX_COUNT: usize = 2_048;
/// Leases that one transaction prolongs.
const EXTENDED_MAX_COUNT: usize = 2_000;
/// Chunks, or rows, that one transaction sweeps, whatever is asked for.
const SWEPT_MAX_COUNT: usize = 256;
/// Rows that one transaction prunes, whatever is asked for: some ten milliseconds.
const PRUNED_MAX_COUNT: usize = 1_024;

#[async_trait]
impl PipelineStore for PostgresStore {
    async fn start_due(
        &self,
        limit: usize,
        chunk_max_devices: usize,
        now: Timestamp,
    ) -> Result<Started, StoreError> {
        let own = self.inner.own.among_others();
        let begin = move |connection: &Connection| {
            let started = start::due(connection, limit, chunk_max_devices, now)?;
            // Others may be the ones that expand it, or send it.
            if let Some(own) = own.filter(|_| !started.begun.is_empty()) {
                node_events::wake(connection, own);
            }
            Ok(started)
        };
        // Callers and single devices wait for it.
        self.write_first(begin).await
    }

    async fn producers(&self) -> Result<Vec<ProducerTask>, StoreError> {
        match self.inner.own.get() {
            Some(own) => {
                // Read before it is written: mostly none is free, and claiming waits for the ledger.
                if self.read_walk(producers::are_free).await? {
                    self.write(move |connection| producers::claim(connection, own)).await?;
                }
                self.read_walk(move |connection| producers::running(connection, Some(own))).await
            }
            None => self.read_walk(|connection| producers::running(connection, None)).await,
        }
    }

    async fn queued_deliveries(&self, task: ProducerTask) -> Result<u64, StoreError> {
        let id = task.message.into();
        self.read_step(move |connection| {
            campaigns::require(connection, task.app, id)?;
            Ok(books::open(connection, id, task.provider)?.ledger().tally.queued)
        })
        .await
    }

    async fn expand(&self, task: ProducerTask, how: Expansion) -> Result<Expanded, StoreError> {
        self.expand_step(task, how).await
    }

    async fn lease(&self, chunks: &[ChunkId], terms: LeaseTerms) -> Result<Vec<LeaseReply>, StoreError> {
        let (chunks, known) = (chunks.to_vec(), Arc::clone(&self.inner.messages));
        let own = self.inner.own.get();
        let work = move |connection: &Connection| lease::lease(connection, (&known, own), &chunks, terms);
        if terms.class == TrafficClass::Urgent {
            self.write_first(work).await
        } else {
            self.write(work).await
        }
    }

    async fn extend(&self, leases: &[Lease], terms: LeaseTerms) -> Result<(), StoreError> {
        let mut all = Ok(());
        // Each portion is tried: a failure of one lets no other lease run out.
        for some in leases.chunks(EXTENDED_MAX_COUNT) {
            let some = some.to_vec();
            all = all.and(self.write(move |connection| chunk_writes::extend(connection, &some, terms)).await);
        }
        all
    }

    async fn release(&self, leases: &[Lease], due_at: Timestamp) -> Result<Vec<Ticket>, StoreError> {
        let leases = leases.to_vec();
        self.write(move |connection| lease::release(connection, &leases, due_at)).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleReply>, StoreError> {
        let own = self.inner.own.get();
        let deliveries: usize = settlements.iter().map(|settlement| settlement.records.len()).sum();
        if deliveries <= SMALL_MAX_DELIVERIES {
            return self.write_first(move |connection| lease::settle(connection, &settlements, own)).await;
        }
        let mut replies = Vec::with_capacity(settlements.len());
        // A portion that is written and not told is settled once more, which changes nothing.
        for some in together(settlements) {
            replies.extend(self.write(move |connection| lease::settle(connection, &some, own)).await?);
        }
        Ok(replies)
    }

    async fn quarantine(
        &self,
        chunk: ChunkId,
        epoch: Option<u32>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let quarantine = move |connection: &Connection| {
            // It may have been settled while nobody could read it.
            let is_open = chunks::is_open(connection, chunk, epoch)?;
            if is_open {
                ledger::take_away(&mut Rows::new(connection), chunk, now)?;
            }
            Ok(is_open)
        };
        self.write(quarantine).await
    }

    async fn try_to_write(&self) -> Result<(), StoreError> {
        self.prove_writing().await
    }

    async fn figures(&self) -> Result<StoreFigures, StoreError> {
        let damaged_rows = self.inner.access.shared.damage.count();
        let quarantined_chunks = self.read(|connection| chunks::count_quarantined(connection)).await?;
        // Its log is the server's to look after.
        Ok(StoreFigures { quarantined_chunks, damaged_rows, log_bytes: 0 })
    }

    async fn continue_work(&self, now: Timestamp) -> Result<bool, StoreError> {
        // A reader looks first, so that the thread that writes is not asked in vain.
        let waits = |connection: &Connection| {
            Ok(leftovers::are_some(connection)?
                || campaigns::canceled(connection)?.is_some()
                || campaigns::stopped(connection)?.is_some())
        };
        if !self.read_step(waits).await? {
            return Ok(false);
        }
        self.write(move |connection| continue_work(connection, now)).await
    }

    async fn recover(&self, instance: u64, now: Timestamp) -> Result<(Recovery, Vec<Ticket>), StoreError> {
        let has_joined = self.inner.own.get().is_some();
        self.write(move |connection| {
            // The number of a start is an id as well, and is given to nothing else.
            sequences::advance(connection, "id", instance)?;
            let mut rows = Rows::new(connection);
            // Alone, whatever is leased is of a former life; among others, only what no living node has.
            if !has_joined {
                return ledger::recover(&mut rows, instance, now);
            }
            ledger::release_dead(&mut rows, &nodes::orphans(connection)?, now)
        })
        .await
    }

    async fn keeps(&self) -> Result<(), StoreError> {
        self.prove_writing().await
    }

    async fn broken(&self) -> String {
        // A server that is lost may come back: nothing here is lost with it.
        std::future::pending().await
    }

    async fn queued(&self, after: ChunkId, limit: usize) -> Result<Vec<Ticket>, StoreError> {
        let found = self.read_walk(move |connection| chunks::queued_after(connection, after, limit));
        let (queued, broken) = found.await?;
        if !broken.is_empty() {
            // An engine has no clock; the end of a chunk needs an instant that is not before it.
            let now = queued.iter().map(|chunk| chunk.due_at).max().unwrap_or_default();
            let aside = self.write(move |connection| {
                let mut rows = Rows::new(connection);
                broken.iter().try_for_each(|id| ledger::take_away(&mut rows, *id, now))
            });
            // They are met again at the next look.
            if let Err(error) = aside.await {
                tracing::warn!(%error, "chunks that cannot be read could not be quarantined");
            }
        }
        Ok(queued.iter().map(ChunkRow::ticket).collect())
    }

    async fn give_up_producer(&self, task: ProducerTask, now: Timestamp) -> Result<(), StoreError> {
        let id = task.message.into();
        self.write(move |connection| {
            ledger::give_up_producer(&mut Rows::new(connection), id, task.provider, now)
        })
        .await
    }

    async fn waiting(&self, chunks: &[ChunkId]) -> Result<Vec<Ticket>, StoreError> {
        let chunks = chunks.to_vec();
        self.read_step(move |connection| chunks::waiting(connection, &chunks)).await
    }

    async fn sweep(&self, limit: usize, now: Timestamp) -> Result<Swept, StoreError> {
        let (limit, own) = (limit.min(SWEPT_MAX_COUNT), self.inner.own.get());
        self.write(move |connection| {
            receipt_rows::forget_expired(connection, now, limit)?;
            ledger::sweep(&mut Rows::of(connection, own), limit, now)
        })
        .await
    }

    async fn prune(
        &self,
        ended_before: Timestamp,
        replies_before: Timestamp,
        limit: usize,
    ) -> Result<u64, StoreError> {
        let limit = limit.min(PRUNED_MAX_COUNT);
        self.write(move |connection| maintenance::prune(connection, ended_before, replies_before, limit))
            .await
    }

    async fn prune_unlisted(&self, before: Timestamp, after: u64) -> Result<(u64, Option<u64>), StoreError> {
        let look = move |connection: &Connection| unlisted::old(connection, before, int(after));
        let (old, next) = self.read_walk(look).await?;
        let next = next.map(i64::unsigned_abs);
        if old.is_empty() {
            return Ok((0, next));
        }
        let gone = self.write(move |connection| unlisted::forget(connection, &old)).await?;
        Ok((gone, next))
    }
}

/// Does a portion of what was begun and is too much for one transaction; returns whether more is left.
fn continue_work(connection: &Connection, now: Timestamp) -> Done<bool> {
    let mut rows = Rows::new(connection);
    // What could still be sent goes before what is merely left over.
    if let Some(id) = campaigns::canceled(connection)?
        && ledger::end_or_quarantine(&mut rows, (id, None), now)?
    {
        return Ok(true);
    }
    if let Some((id, provider, reason)) = campaigns::stopped(connection)?
        && ledger::end_or_quarantine(&mut rows, (id, Some((provider, reason))), now)?
    {
        return Ok(true);
    }
    leftovers::go_on(connection, &Portion::begin(connection))
}

/// Puts settlements together whose changes of devices fit one transaction.
fn together(settlements: Vec<Settlement>) -> Vec<Vec<Settlement>> {
    let (mut groups, mut changes) = (vec![Vec::new()], 0);
    for settlement in settlements {
        let own = settlement.tokens.len();
        if changes > 0 && changes + own > CHANGES_MAX_COUNT {
            groups.push(Vec::new());
            changes = 0;
        }
        changes += own;
        if let Some(group) = groups.last_mut() {
            group.push(settlement);
        }
    }
    groups
}
