use async_trait::async_trait;
use stentor_core::campaign::{CampaignState, Stop};
use stentor_core::chunk::Ticket;
use stentor_core::id::{CampaignId, ChunkId, DeviceId};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{
    Expanded, Expansion, Lease, LeaseReply, PipelineStore, ProducerTask, Recovery, SettleReply, StoreError,
    Swept,
};
use stentor_core::settlement::Settlement;
use stentor_core::time::Timestamp;

use super::MemoryStore;
use super::campaigns::NewChunk;
use super::schedules::by_app;
use super::state::State;

#[async_trait]
impl PipelineStore for MemoryStore {
    async fn start_due(
        &self,
        limit: usize,
        chunk_max_devices: usize,
        now: Timestamp,
    ) -> Result<Vec<Ticket>, StoreError> {
        self.lock().start_due(limit, chunk_max_devices, now)
    }

    async fn producers(&self) -> Result<Vec<ProducerTask>, StoreError> {
        Ok(self.lock().producers())
    }

    async fn expand(&self, task: ProducerTask, how: Expansion) -> Result<Expanded, StoreError> {
        self.lock().expand(task, how)
    }

    async fn give_up_producer(&self, task: ProducerTask, now: Timestamp) -> Result<(), StoreError> {
        self.lock().give_up_producer(task, now)
    }

    async fn lease(&self, chunks: &[ChunkId], lease: Lease) -> Result<Vec<LeaseReply>, StoreError> {
        let mut state = self.lock();
        chunks.iter().map(|chunk| state.lease(*chunk, lease)).collect()
    }

    async fn extend(&self, chunks: &[(ChunkId, u32)], lease: Lease) -> Result<(), StoreError> {
        let mut state = self.lock();
        chunks.iter().for_each(|(chunk, epoch)| state.extend(*chunk, *epoch, lease));
        Ok(())
    }

    async fn release(&self, chunks: &[(ChunkId, u32)], due_at: Timestamp) -> Result<Vec<Ticket>, StoreError> {
        self.lock().release(chunks, due_at)
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleReply>, StoreError> {
        self.lock().settle_all(settlements)
    }

    async fn set_aside(
        &self,
        chunk: ChunkId,
        epoch: Option<u32>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.lock().set_aside(chunk, epoch, now)
    }

    async fn try_to_write(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn set_aside_count(&self) -> Result<u64, StoreError> {
        Ok(self.lock().set_aside.len() as u64)
    }

    async fn continue_work(&self, _now: Timestamp) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn log_bytes(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn recover(&self, instance: u64, now: Timestamp) -> Result<Recovery, StoreError> {
        self.lock().recover(instance, now)
    }

    async fn keeps(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn broken(&self) -> String {
        std::future::pending().await
    }

    async fn queued(&self, after: ChunkId, limit: usize) -> Result<Vec<Ticket>, StoreError> {
        Ok(self.lock().queued(after, limit))
    }

    async fn waiting(&self, chunks: &[ChunkId]) -> Result<Vec<Ticket>, StoreError> {
        let state = self.lock();
        Ok(chunks.iter().filter_map(|id| state.waiting(*id)).collect())
    }

    async fn sweep(&self, limit: usize, now: Timestamp) -> Result<Swept, StoreError> {
        self.lock().sweep(limit, now)
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

impl State {
    fn start_due(
        &mut self,
        limit: usize,
        chunk_max_devices: usize,
        now: Timestamp,
    ) -> Result<Vec<Ticket>, StoreError> {
        let waiting = self.campaigns.values().map(|row| &row.campaign);
        let mut due: Vec<_> = waiting
            .filter(|campaign| campaign.state == CampaignState::Scheduled && campaign.due_at <= now)
            .map(|campaign| (campaign.due_at, campaign.id, campaign.app))
            .collect();
        due.sort_unstable();
        let mut tickets = Vec::new();
        for (_, id, _) in by_app(due, |(_, _, app)| *app, limit) {
            tickets.extend(self.begin(id, chunk_max_devices, now)?);
        }
        Ok(tickets)
    }

    fn producers(&self) -> Vec<ProducerTask> {
        let running = self.campaigns.values().filter(|row| row.is_running());
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
        let producing = |row: &&_| is_producing(row, task);
        let Some((row, as_of)) = row.filter(producing).and_then(|row| Some((row, row.as_of?))) else {
            return Ok(Expanded { tickets: Vec::new(), done: true, paused: false });
        };
        if row.campaign.state == CampaignState::Paused {
            return Ok(Expanded { tickets: Vec::new(), done: false, paused: true });
        }
        let size = how.chunk_max_devices.max(1);
        let most = size.saturating_mul(how.max_chunks);
        let cursor = row.providers.get(&task.provider).and_then(|at| at.cursor);
        let audience =
            self.app(task.app)?.wide_audience(&row.message.spec.target, task.provider, cursor, as_of);
        let devices: Vec<DeviceId> = audience.take(most).collect();
        let mut tickets = Vec::new();
        for slice in devices.chunks(size) {
            let chunk = NewChunk::first(task.provider, slice, how.now);
            tickets.push(self.add_first_chunk(id, &chunk, how.now)?);
        }
        let done = devices.len() < most;
        let row = self.row(id)?;
        let at = row.at(task.provider);
        at.cursor = devices.last().copied().or(at.cursor);
        at.producing = !done;
        at.books.set_complete(done);
        row.finish_if_over(how.now);
        Ok(Expanded { tickets, done, paused: false })
    }

    fn give_up_producer(&mut self, task: ProducerTask, now: Timestamp) -> Result<(), StoreError> {
        let id = CampaignId::from(task.message);
        let Some(row) = self.campaigns.get_mut(&id).filter(|row| is_producing(row, task)) else {
            return Ok(());
        };
        let stop = Stop { reason: Reason::Damaged, detail: "its audience cannot be found out".to_owned() };
        row.at(task.provider).books.stop(stop);
        self.wind_up(id, Some(task.provider), now)
    }

    fn queued(&self, after: ChunkId, limit: usize) -> Vec<Ticket> {
        let later = self.open.iter().filter(|id| **id > after);
        later.filter_map(|id| self.waiting(*id)).take(limit).collect()
    }

    /// Returns the ticket of a chunk that is queued and whose campaign runs.
    fn waiting(&self, id: ChunkId) -> Option<Ticket> {
        let chunk = self.chunks.get(&id).filter(|chunk| chunk.is_queued())?;
        self.campaigns.get(&chunk.campaign)?.is_running().then(|| chunk.ticket(id))
    }
}

fn is_producing(row: &super::state::CampaignRow, task: ProducerTask) -> bool {
    row.providers.get(&task.provider).is_some_and(|at| at.producing)
}
