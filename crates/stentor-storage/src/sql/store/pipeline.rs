//! The ports of the pipeline and of receipts.

use std::sync::Arc;

use async_trait::async_trait;
use stentor_core::chunk::{Ticket, TrafficClass};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId, DeviceId};
use stentor_core::ledger;
use stentor_core::ports::store::{
    BrokenWork, Expanded, Expansion, HealthStore, Lease, LeaseReply, LeaseTerms, PendingDelivery,
    PipelineStore, ProducerTask, PruneTask, Pruned, QueuedFilter, Receipt, ReceiptStore, Recovery,
    SettleReply, Started, StoreError, StoreFigures, Swept, WriteProof,
};
use stentor_core::settlement::Settlement;
use stentor_core::time::Timestamp;

use super::chunks::{self, ChunkRow};
use super::{audit, books, campaigns, producers, proposals, schedules, start, unlisted, upstream};
use crate::sql::{
    Done, EngineParts as _, LedgerEngine, Portion, SqlStore, WriteKind, all, exists, int, limit, params, run,
};

/// Settlements of no more deliveries than this go first: they are single messages', or done at once.
const SMALL_MAX_DELIVERIES: usize = 64;
/// Changes of devices that settlements make in one transaction, unless a single one makes more.
const CHANGES_MAX_COUNT: usize = 2_048;
/// Receipts that one transaction writes chunk by chunk.
const APART_MAX_COUNT: usize = 256;
/// Leases that one transaction prolongs.
const EXTENDED_MAX_COUNT: usize = 2_000;
/// Chunks that one transaction sweeps.
const SWEPT_MAX_COUNT: usize = 256;
/// Events and quota levels that one transaction deletes.
const EVENTS_PRUNED_MAX_COUNT: usize = 1_024;

#[async_trait]
impl<E: LedgerEngine> PipelineStore for SqlStore<E> {
    async fn start_due(
        &self,
        limit: usize,
        chunk_max_devices: usize,
        now: Timestamp,
    ) -> Result<Started, StoreError> {
        // Callers and single devices wait for it.
        self.write_first(move |connection| {
            let started = start::due::<E>(connection, limit, chunk_max_devices, now)?;
            if !started.begun.is_empty() {
                connection.wake_others();
            }
            Ok(started)
        })
        .await
    }

    async fn producers(&self) -> Result<Vec<ProducerTask>, StoreError> {
        let own = self.inner.own_node();
        // Read first: most often none is free, and a claim waits for the ledger.
        if let Some(own) = own
            && self.read_walk(|connection| producers::are_free(connection)).await?
        {
            self.write(move |connection| producers::claim(connection, own)).await?;
        }
        self.read_walk(move |connection| producers::running(connection, own)).await
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
        E::expand(self, task, how).await
    }

    async fn lease(&self, chunks: &[ChunkId], terms: LeaseTerms) -> Result<Vec<LeaseReply>, StoreError> {
        let is_urgent = terms.class == TrafficClass::Urgent;
        let kind = if is_urgent { WriteKind::LedgerFirst } else { WriteKind::Ledger };
        E::lease(self, kind, chunks.to_vec(), terms).await
    }

    async fn extend(&self, leases: &[Lease], terms: LeaseTerms) -> Result<(), StoreError> {
        let mut all = Ok(());
        // Each portion is tried: a failure of one lets no other lease run out.
        for some in leases.chunks(EXTENDED_MAX_COUNT) {
            all = all.and(E::extend(self, some.to_vec(), terms).await);
        }
        all
    }

    async fn release(&self, leases: &[Lease], due_at: Timestamp) -> Result<Vec<Ticket>, StoreError> {
        let leases = leases.to_vec();
        self.write(move |connection| E::release(connection, &leases, due_at)).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleReply>, StoreError> {
        let deliveries: usize = settlements.iter().map(|settlement| settlement.records.len()).sum();
        if deliveries <= SMALL_MAX_DELIVERIES {
            return E::settle(self, WriteKind::LedgerFirst, settlements).await;
        }
        let mut replies = Vec::with_capacity(settlements.len());
        for some in together(settlements) {
            // A portion that is written without a reply is settled once more, which changes nothing.
            replies.extend(E::settle(self, WriteKind::Ledger, some).await?);
        }
        Ok(replies)
    }

    async fn quarantine(&self, work: BrokenWork, now: Timestamp) -> Result<bool, StoreError> {
        match work {
            BrokenWork::Chunk { chunk, epoch } => self.quarantine_chunk(chunk, epoch, now).await,
            BrokenWork::Producer(task) => {
                let id = task.message.into();
                self.write(move |connection| {
                    ledger::give_up_producer(&mut E::rows(connection), id, task.provider, now).map(|()| true)
                })
                .await
            }
            BrokenWork::Schedule(id) => {
                self.write(move |connection| schedules::quarantine(connection, id)).await
            }
        }
    }

    async fn continue_work(&self, now: Timestamp) -> Result<bool, StoreError> {
        // A reader checks first, so that the writer thread gets no job in vain.
        let waits = |connection: &E::Connection| {
            Ok(exists(connection, "SELECT 1 FROM leftovers LIMIT 1", ())?
                || campaigns::canceled(connection)?.is_some()
                || campaigns::stopped(connection)?.is_some())
        };
        if !self.read_step(waits).await? {
            return Ok(false);
        }
        self.write(move |connection| continue_work::<E>(connection, now)).await
    }

    async fn recover(&self, instance: u64, now: Timestamp) -> Result<(Recovery, Vec<Ticket>), StoreError> {
        E::recover(self, instance, now).await
    }

    async fn queued(&self, filter: QueuedFilter<'_>) -> Result<Vec<Ticket>, StoreError> {
        match filter {
            QueuedFilter::After(after, limit) => self.queued_after(after, limit).await,
            QueuedFilter::Among(chunks) => {
                let chunks = chunks.to_vec();
                self.read_step(move |connection| chunks::waiting(connection, &chunks)).await
            }
        }
    }

    async fn sweep(&self, limit: usize, now: Timestamp) -> Result<Swept, StoreError> {
        E::sweep(self, limit.min(SWEPT_MAX_COUNT), now).await
    }

    async fn prune(&self, task: PruneTask, limit: usize) -> Result<Pruned, StoreError> {
        let count = match task {
            PruneTask::Campaigns { ended_before, replies_before } => {
                let limit = limit.min(E::PRUNED_MAX_COUNT);
                self.write(move |connection| prune::<E>(connection, ended_before, replies_before, limit))
                    .await
            }
            PruneTask::Unlisted { before, after } => return self.prune_unlisted(before, after).await,
            PruneTask::Upstream { expired_before, dead_before } => {
                let work = move |connection: &E::Connection| {
                    upstream::prune(connection, expired_before, dead_before, limit)
                };
                self.write_registry(work).await
            }
            PruneTask::Audit { before } => {
                self.write(move |connection| audit::prune(connection, before, limit)).await
            }
            PruneTask::Proposals { expired_before } => {
                self.write(move |connection| proposals::prune(connection, expired_before, limit)).await
            }
            PruneTask::Events => {
                // A read comes first, as mostly there is nothing to delete.
                if !self.look_up(|connection| connection.has_old_events()).await? {
                    return Ok(task.deleted(0));
                }
                // Callers' messages wait for the transaction.
                let limit = limit.min(EVENTS_PRUNED_MAX_COUNT);
                self.write_rows(move |connection| connection.prune_events(limit)).await
            }
        };
        Ok(task.deleted(count?))
    }
}

#[expect(private_bounds, reason = "other crates name stores, and never the parts of an engine")]
impl<E: LedgerEngine> SqlStore<E> {
    async fn quarantine_chunk(
        &self,
        chunk: ChunkId,
        epoch: Option<u32>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let quarantine = move |connection: &E::Connection| {
            // It may have been settled while it was unreadable.
            let is_open = chunks::is_open(connection, chunk, epoch)?;
            if is_open {
                ledger::take_away(&mut E::rows(connection), chunk, now)?;
            }
            Ok(is_open)
        };
        match self.write(quarantine).await {
            Err(StoreError::Unreadable(problem)) => E::set_aside(self, chunk, problem).await,
            done => done,
        }
    }

    async fn queued_after(&self, after: ChunkId, limit: usize) -> Result<Vec<Ticket>, StoreError> {
        let found = self.read_walk(move |connection| chunks::queued_after(connection, after, limit));
        let (queued, broken) = found.await?;
        if !broken.is_empty() {
            // An engine has no clock; the end of a chunk needs an instant that is not before it.
            let now = queued.iter().map(|chunk| chunk.due_at).max().unwrap_or_default();
            let aside = self.write(move |connection| {
                let mut rows = E::rows(connection);
                broken.iter().try_for_each(|id| ledger::take_away(&mut rows, *id, now))
            });
            // They are met again at the next look.
            if let Err(error) = aside.await {
                tracing::warn!(%error, "chunks that cannot be read could not be quarantined");
            }
        }
        let readable = queued.iter().filter(|chunk| !self.inner.is_set_aside(chunk.id));
        Ok(readable.map(ChunkRow::ticket).collect())
    }

    async fn prune_unlisted(&self, before: Timestamp, after: u64) -> Result<Pruned, StoreError> {
        let look = move |connection: &E::Connection| unlisted::old(connection, before, int(after));
        let (old, next) = self.read_walk(look).await?;
        let next = next.map(|after| PruneTask::Unlisted { before, after: after.unsigned_abs() });
        if old.is_empty() {
            return Ok(Pruned { count: 0, next });
        }
        let count = self.write(move |connection| unlisted::forget(connection, &old)).await?;
        Ok(Pruned { count, next })
    }
}

#[async_trait]
impl<E: LedgerEngine> HealthStore for SqlStore<E> {
    async fn keeps(&self, proof: WriteProof) -> Result<(), StoreError> {
        match proof {
            WriteProof::Recent => E::keeps(self).await,
            WriteProof::Now => self.prove_writing().await,
        }
    }

    async fn figures(&self) -> Result<StoreFigures, StoreError> {
        let log_bytes = self.inner.log_bytes();
        self.read(move |connection| {
            let quarantined_chunks = chunks::count_quarantined(connection)?;
            Ok(StoreFigures { quarantined_chunks, damaged_rows: connection.damaged_rows(), log_bytes })
        })
        .await
    }

    async fn broken(&self) -> String {
        self.inner.broken().await
    }
}

#[async_trait]
impl<E: LedgerEngine> ReceiptStore for SqlStore<E> {
    async fn pending(
        &self,
        devices: &[(AppId, DeviceId)],
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<Vec<PendingDelivery>>, StoreError> {
        E::pending(self, devices, limit, now).await
    }

    async fn receive(&self, receipts: Vec<Receipt>, now: Timestamp) -> Result<Vec<bool>, StoreError> {
        let receipts: Arc<[Receipt]> = receipts.into();
        let all = Arc::clone(&receipts);
        match self.write(move |connection| E::receive(connection, &all, now)).await {
            Err(error) if !error.is_of_the_engine() => receive_apart(self, &receipts, now).await,
            done => done,
        }
    }
}

/// Writes receipts of which some meet damage.
async fn receive_apart<E: LedgerEngine>(
    store: &SqlStore<E>,
    receipts: &[Receipt],
    now: Timestamp,
) -> Result<Vec<bool>, StoreError> {
    let mut replies = Vec::with_capacity(receipts.len());
    for some in receipts.chunks(APART_MAX_COUNT) {
        let some = some.to_vec();
        let work =
            move |connection: &E::Connection| ledger::receive_apart(&mut E::rows(connection), &some, now);
        replies.extend(store.write(work).await?);
    }
    Ok(replies)
}

/// Deletes old campaigns and replies, at most `count` rows; returns the number of rows.
fn prune<E: LedgerEngine>(
    connection: &E::Connection,
    ended_before: Timestamp,
    replies_before: Timestamp,
    count: usize,
) -> Done<u64> {
    // Messages that devices may still fetch are kept: accepted, unconfirmed and unexpired ones, and those that may be the last state of a
    // topic.
    let sql = "SELECT id FROM campaigns k WHERE ended_at < ?1 AND (expires_at < ?1 OR retained_topic IS NULL AND NOT EXISTS
        (SELECT 1 FROM ledgers WHERE campaign = k.id AND provider = ?3 AND accepted > delivered))
        ORDER BY ended_at LIMIT ?2";
    let values = params![ended_before.as_millis(), limit(count), ProviderKind::Gateway.code()];
    let old = all(connection, sql, values, campaigns::raw_id)?;
    let campaigns = E::forget(connection, &old, count)?;
    let sql = "DELETE FROM replies WHERE (app, key) IN
        (SELECT app, key FROM replies WHERE created_at < ?1 ORDER BY created_at LIMIT ?2)";
    let replies = run(connection, sql, [replies_before.as_millis(), limit(count - campaigns)])?;
    Ok((campaigns + replies) as u64)
}

/// Does a portion of unfinished work that is too much for one transaction; returns true if more is left.
fn continue_work<E: LedgerEngine>(connection: &E::Connection, now: Timestamp) -> Done<bool> {
    let mut rows = E::rows(connection);
    // Deliveries that could still be sent come before mere leftovers.
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
    connection.go_on_removing(&Portion::begin(connection))
}

/// Groups settlements whose changes of devices fit into one transaction.
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
