use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use stentor_core::campaign::CampaignState;
use stentor_core::chunk::{ChunkState, Lane, Ticket};
use stentor_core::device::{Device, ProviderKind};
use stentor_core::id::{CampaignId, ChunkId, DeviceId};
use stentor_core::ledger::{self, Cutting, LedgerCache, LedgerRows, NextStep, next_step};
use stentor_core::ports::store::{
    Expanded, Expansion, Lease, LeaseReply, LeaseTerms, PipelineStore, ProducerTask, Recovery, SettleReply,
    Started, StoreError, StoreFigures, Swept,
};
use stentor_core::settlement::Settlement;
use stentor_core::time::Timestamp;

use super::MemoryStore;
use super::schedules::by_app;
use super::state::{CampaignRow, StoredChunk, Tables};

#[async_trait]
impl PipelineStore for MemoryStore {
    async fn start_due(
        &self,
        limit: usize,
        chunk_max_devices: usize,
        now: Timestamp,
    ) -> Result<Started, StoreError> {
        self.lock().start_due(limit, chunk_max_devices, now)
    }

    async fn producers(&self) -> Result<Vec<ProducerTask>, StoreError> {
        Ok(self.lock().producers())
    }

    async fn queued_deliveries(&self, task: ProducerTask) -> Result<u64, StoreError> {
        let state = self.lock();
        let at = state.campaign(task.app, task.message.into())?.providers.get(&task.provider);
        Ok(at.map(|at| at.books.ledger().tally.queued).unwrap_or_default())
    }

    async fn expand(&self, task: ProducerTask, how: Expansion) -> Result<Expanded, StoreError> {
        self.lock().expand(task, how)
    }

    async fn give_up_producer(&self, task: ProducerTask, now: Timestamp) -> Result<(), StoreError> {
        ledger::give_up_producer(&mut *self.lock(), task.message.into(), task.provider, now)
    }

    async fn lease(&self, chunks: &[ChunkId], terms: LeaseTerms) -> Result<Vec<LeaseReply>, StoreError> {
        self.lock().with_books(terms.now, |ledger| {
            chunks.iter().map(|chunk| ledger::lease(ledger, *chunk, terms)).collect()
        })
    }

    async fn extend(&self, leases: &[Lease], terms: LeaseTerms) -> Result<(), StoreError> {
        let mut state = self.lock();
        for Lease { chunk, epoch } in leases {
            let held = state.chunks.get_mut(chunk).filter(|chunk| chunk.facts.is_leased_under(*epoch));
            let held = held.and_then(|chunk| chunk.lease.as_mut());
            // Instance and epoch are the fence: a lease that was released and taken again is not prolonged.
            if let Some(held) = held.filter(|held| held.instance == terms.instance) {
                held.until = terms.until;
            }
        }
        Ok(())
    }

    async fn release(&self, leases: &[Lease], due_at: Timestamp) -> Result<Vec<Ticket>, StoreError> {
        self.lock().with_books(due_at, |ledger| {
            let tickets = leases.iter().map(|lease| ledger::release(ledger, *lease, due_at));
            let tickets: Result<Vec<_>, _> = tickets.collect();
            Ok(tickets?.into_iter().flatten().collect())
        })
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleReply>, StoreError> {
        self.lock().settle_all(settlements)
    }

    async fn quarantine(
        &self,
        chunk: ChunkId,
        epoch: Option<u32>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let state = &mut *self.lock();
        let is_meant = |chunk: &StoredChunk| match epoch {
            Some(epoch) => chunk.facts.is_leased_under(epoch),
            None => chunk.is_queued(),
        };
        if !state.chunks.get(&chunk).is_some_and(is_meant) {
            return Ok(false);
        }
        ledger::take_away(state, chunk, now).map(|()| true)
    }

    async fn try_to_write(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn figures(&self) -> Result<StoreFigures, StoreError> {
        let state = self.lock();
        let states = state.chunks.values().map(|chunk| chunk.facts.state);
        let quarantined_chunks = states.filter(|state| *state == ChunkState::Quarantined).count() as u64;
        Ok(StoreFigures { quarantined_chunks, ..StoreFigures::default() })
    }

    async fn continue_work(&self, _now: Timestamp) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn recover(&self, instance: u64, now: Timestamp) -> Result<(Recovery, Vec<Ticket>), StoreError> {
        let state = &mut *self.lock();
        state.last_instance = state.last_instance.max(instance);
        ledger::recover(state, instance, now)
    }

    async fn keeps(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn broken(&self) -> String {
        std::future::pending().await
    }

    async fn queued(&self, after: ChunkId, limit: usize) -> Result<Vec<Ticket>, StoreError> {
        Ok(self.lock().queued_after(after, limit))
    }

    async fn waiting(&self, chunks: &[ChunkId]) -> Result<Vec<Ticket>, StoreError> {
        let state = self.lock();
        Ok(chunks.iter().filter_map(|id| state.waiting(*id)).collect())
    }

    async fn sweep(&self, limit: usize, now: Timestamp) -> Result<Swept, StoreError> {
        ledger::sweep(&mut *self.lock(), limit, now)
    }

    async fn prune(
        &self,
        ended_before: Timestamp,
        replies_before: Timestamp,
        limit: usize,
    ) -> Result<u64, StoreError> {
        Ok(self.lock().prune(ended_before, replies_before, limit))
    }

    async fn prune_unlisted(&self, before: Timestamp, _after: u64) -> Result<(u64, Option<u64>), StoreError> {
        self.lock().prune_unlisted(before).map(|gone| (gone, None))
    }
}

impl Tables {
    /// Does something with books, and writes those that it opens.
    pub(super) fn with_books<T>(
        &mut self,
        now: Timestamp,
        work: impl FnOnce(&mut LedgerCache<'_, Self>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut ledger = LedgerCache::new(self);
        let done = work(&mut ledger);
        ledger.close(now)?;
        done
    }

    fn start_due(
        &mut self,
        limit: usize,
        chunk_max_devices: usize,
        now: Timestamp,
    ) -> Result<Started, StoreError> {
        let waiting = self.campaigns.values().map(|row| &row.campaign);
        let mut due: Vec<_> = waiting
            .filter(|campaign| campaign.state == CampaignState::Scheduled && campaign.due_at <= now)
            .map(|campaign| (campaign.due_at, campaign.id, campaign.app))
            .collect();
        due.sort_unstable();
        let mut started = Started { has_more: due.len() > limit, ..Started::default() };
        for (_, id, app) in by_app(due, |(_, _, app)| *app, limit) {
            started.tickets.extend(self.begin(id, Cutting { chunk_max_devices, now })?);
            started.begun.push(app);
            started.has_producers |= self.row(id)?.providers.values().any(|at| at.producing);
        }
        Ok(started)
    }

    /// Begins a campaign; returns the chunks of a direct target.
    pub(super) fn begin(&mut self, id: CampaignId, cutting: Cutting) -> Result<Vec<Ticket>, StoreError> {
        let message = Arc::clone(&self.row(id)?.message);
        let Self { apps, last_device, .. } = self;
        let app = apps.get_mut(&message.app).ok_or(StoreError::NotFound("app"))?;
        let audience = app.audience(last_device, &message.spec.target, cutting.now);
        // After the audience, for which a device may have been made: the bound holds it too.
        let bounded = (audience, DeviceId::from_raw(*last_device));
        self.with_books(cutting.now, |ledger| ledger::begin(ledger, &message, bounded, cutting))
    }

    fn producers(&self) -> Vec<ProducerTask> {
        let running = self.campaigns.values().filter(|row| row.campaign.state == CampaignState::Running);
        let tasks = running.flat_map(|row| {
            let (message, app) = (row.message.id, row.campaign.app);
            let open = row.providers.iter().filter(|(_, at)| at.producing);
            open.map(move |(provider, _)| ProducerTask { message, app, provider: *provider })
        });
        tasks.collect()
    }

    fn expand(&mut self, task: ProducerTask, how: Expansion) -> Result<Expanded, StoreError> {
        let id = CampaignId::from(task.message);
        let row = self.campaigns.get(&id).filter(|row| row.campaign.app == task.app);
        let found = row.and_then(|row| {
            let at = row.providers.get(&task.provider).filter(|at| at.producing)?;
            Some((row, at.cursor, row.as_of?))
        });
        let step = next_step(found.map(|(row, ..)| row.campaign.state));
        let Some((row, cursor, as_of)) = found.filter(|_| step == NextStep::Look) else {
            return Ok(Expanded::nothing(step));
        };
        let target = &row.message.spec.target;
        let audience = self.app(task.app)?.wide_audience(target, task.provider, cursor, as_of);
        let devices: Vec<DeviceId> = audience.take(how.max_devices()).collect();
        let lane = Lane { provider: task.provider, app: task.app, class: target.class() };
        self.with_books(how.now, |ledger| ledger::expand(ledger, id, lane, &devices, how))
    }

    fn queued_after(&self, after: ChunkId, limit: usize) -> Vec<Ticket> {
        let later = self.open.iter().filter(|id| **id > after);
        later.filter_map(|id| self.waiting(*id)).take(limit).collect()
    }

    /// Returns the ticket of a chunk that is queued and whose campaign runs.
    fn waiting(&self, id: ChunkId) -> Option<Ticket> {
        let chunk = self.chunk(id).ok()??;
        let waits = chunk.state == ChunkState::Queued && chunk.is_running();
        waits.then_some(Ticket { chunk: id, lane: chunk.lane, due_at: chunk.due_at })
    }

    /// Writes all settlements, or none when one of them makes no sense.
    fn settle_all(&mut self, settlements: Vec<Settlement>) -> Result<Vec<SettleReply>, StoreError> {
        for one in &settlements {
            // Before anything is written: nothing here can be taken back.
            let devices = self.chunks.get(&one.chunk).map(|chunk| chunk.devices.len());
            if devices.is_some_and(|count| !one.is_coherent(count)) {
                return Err(StoreError::Conflict(format!("the settlement of {} is incoherent", one.chunk)));
            }
        }
        let now = settlements.iter().map(|given| given.now).max().unwrap_or_default();
        self.with_books(now, |ledger| {
            settlements.into_iter().map(|one| ledger::settle(ledger, one)).collect()
        })
    }

    fn prune(&mut self, ended_before: Timestamp, replies_before: Timestamp, limit: usize) -> u64 {
        let awaits = |row: &CampaignRow| {
            let at = row.providers.get(&ProviderKind::Gateway).map(|at| at.books.ledger());
            at.is_some_and(|ledger| ledger.tally.accepted > ledger.delivered)
        };
        let is_wanted = |row: &CampaignRow| row.message.spec.retained_topic().is_some() || awaits(row);
        let kept = |row: &&CampaignRow| row.campaign.expires_at >= ended_before && is_wanted(row);
        let ended = self.campaigns.values().filter(|row| !kept(row)).map(|row| &row.campaign);
        let old = ended.filter(|campaign| campaign.ended_at.is_some_and(|at| at < ended_before));
        let old: BTreeSet<CampaignId> = old.map(|campaign| campaign.id).take(limit).collect();
        let mut gone = 0;
        for row in old.iter().filter_map(|id| self.campaigns.remove(id)) {
            row.chunks.iter().for_each(|chunk| _ = self.chunks.remove(chunk));
            gone += 1 + row.chunks.len() as u64;
        }
        for app in self.apps.values_mut() {
            let before = app.replies.len();
            app.replies.retain(|_, reply| reply.created_at >= replies_before);
            gone += (before - app.replies.len()) as u64;
        }
        gone
    }

    fn prune_unlisted(&mut self, before: Timestamp) -> Result<u64, StoreError> {
        let chunks = self.chunks.values();
        let counted: BTreeSet<DeviceId> = chunks.flat_map(|chunk| chunk.devices.iter().copied()).collect();
        let mut gone = 0;
        for app in self.apps.values_mut() {
            let is_old = |device: &&Device| !device.listed && device.registered_at < before;
            let old = app.devices.values().filter(is_old).map(|device| device.id);
            let old: Vec<DeviceId> = old.filter(|id| !counted.contains(id)).collect();
            gone += old.len() as u64;
            old.into_iter().try_for_each(|id| app.remove_device(id))?;
        }
        Ok(gone)
    }
}
