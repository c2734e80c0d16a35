use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::Connection;
use stentor_core::chunk::{Ticket, TrafficClass};
use stentor_core::id::ChunkId;
use stentor_core::ledger;
use stentor_core::ports::store::{
    Expanded, Expansion, Lease, LeaseReply, LeaseTerms, PipelineStore, ProducerTask, Recovery, SettleReply,
    Started, StoreError, StoreFigures, Swept,
};
use stentor_core::settlement::Settlement;
use stentor_core::time::Timestamp;

use super::chunks::{self, ChunkRow};
use super::contents::LeaseCaches;
use super::rows::Rows;
use super::{
    SqliteStore, books, campaigns, lease, leftovers, maintenance, producers, receipt_rows, sequences, start,
    unlisted,
};
use crate::sql::{Done, Portion, int};
use crate::sqlite::damage;
use crate::sqlite::wal;
use crate::sqlite::writer::CommitPriority;

/// Settlements of no more deliveries than this go first: they are single messages', or done at once.
const SMALL_MAX_DELIVERIES: usize = 64;
/// Changes of devices that settlements make in one transaction, unless a single one makes more.
const CHANGES_MAX_COUNT: usize = 2_048;
/// Leases that one transaction prolongs.
const EXTENDED_MAX_COUNT: usize = 2_000;
/// Chunks, or rows, that one transaction sweeps or prunes, whatever is asked for.
const SWEPT_MAX_COUNT: usize = 256;

#[async_trait]
impl PipelineStore for SqliteStore {
    async fn start_due(
        &self,
        limit: usize,
        chunk_max_devices: usize,
        now: Timestamp,
    ) -> Result<Started, StoreError> {
        // Callers and single devices wait for it.
        self.write_first(move |connection| start::due(connection, limit, chunk_max_devices, now)).await
    }

    async fn producers(&self) -> Result<Vec<ProducerTask>, StoreError> {
        self.read_walk(producers::running).await
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
        let (messages, prefetch) = (Arc::clone(&self.inner.messages), Arc::clone(&self.inner.prefetch));
        let (chunks, known) = (chunks.to_vec(), LeaseCaches { messages, prefetch });
        let work = move |connection: &Connection| lease::lease(connection, &known, &chunks, terms);
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
            all = all.and(self.extend_some(some, terms).await);
        }
        all
    }

    async fn release(&self, leases: &[Lease], due_at: Timestamp) -> Result<Vec<Ticket>, StoreError> {
        let leases = leases.to_vec();
        self.write(move |connection| lease::release(connection, &leases, due_at)).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleReply>, StoreError> {
        let deliveries: usize = settlements.iter().map(|settlement| settlement.records.len()).sum();
        if deliveries <= SMALL_MAX_DELIVERIES {
            let work = move |connection: &Connection| lease::settle(connection, settlements);
            return self.inner.writer.run(CommitPriority::First, work).await;
        }
        let mut replies = Vec::with_capacity(settlements.len());
        for some in together(settlements) {
            // A portion that is written and not told is settled once more, which changes nothing.
            let work = move |connection: &Connection| lease::settle(connection, some);
            replies.extend(self.inner.writer.run(CommitPriority::Usual, work).await?);
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
        match self.write(quarantine).await {
            Err(StoreError::Unreadable(problem)) => {
                // A disk that takes no writes at all is another trouble, and no fault of this chunk.
                self.prove_writing().await.map_err(|_| StoreError::Unreadable(problem))?;
                self.inner.lost.add(chunk);
                Ok(true)
            }
            done => done,
        }
    }

    async fn try_to_write(&self) -> Result<(), StoreError> {
        self.prove_writing().await
    }

    async fn figures(&self) -> Result<StoreFigures, StoreError> {
        let log_bytes = wal::size(&self.inner.log);
        self.read(move |connection| {
            let quarantined_chunks = chunks::count_quarantined(connection)?;
            Ok(StoreFigures { quarantined_chunks, damaged_rows: damage::count(connection), log_bytes })
        })
        .await
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
        self.write_around(move |connection, lost| {
            // The number of a start is an id as well, and is given to nothing else.
            sequences::advance(connection, "id", instance)?;
            ledger::recover(&mut Rows::around(connection, lost), instance, now)
        })
        .await
    }

    async fn keeps(&self) -> Result<(), StoreError> {
        self.inner.writer.keeps(|connection| sequences::probe(connection)).await
    }

    async fn broken(&self) -> String {
        self.inner.writer.ended().await
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
        let lost = &self.inner.lost;
        Ok(queued.iter().filter(|chunk| !lost.has(chunk.id)).map(ChunkRow::ticket).collect())
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
        let limit = limit.min(SWEPT_MAX_COUNT);
        self.write_around(move |connection, lost| {
            receipt_rows::forget_expired(connection, now, limit)?;
            ledger::sweep(&mut Rows::around(connection, lost), limit, now)
        })
        .await
    }

    async fn prune(
        &self,
        ended_before: Timestamp,
        replies_before: Timestamp,
        limit: usize,
    ) -> Result<u64, StoreError> {
        let limit = limit.min(SWEPT_MAX_COUNT);
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

impl SqliteStore {
    /// Prolongs the leases of a few chunks. One that the disk does not give must not let all others run out.
    async fn extend_some(&self, some: &[Lease], terms: LeaseTerms) -> Result<(), StoreError> {
        let all = some.to_vec();
        let together = self.write(move |connection| lease::extend(connection, &all, terms)).await;
        let Err(StoreError::Unreadable(_)) = together else { return together };
        // One that cannot be written while others can is lost to the disk, and its lease is nobody's trouble.
        let mut worked = some.len() == 1 && self.prove_writing().await.is_ok();
        for one in some.iter().copied().filter(|_| some.len() > 1) {
            worked |= self.write(move |connection| lease::extend(connection, &[one], terms)).await.is_ok();
        }
        if worked { Ok(()) } else { together }
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

#[cfg(test)]
mod tests;
