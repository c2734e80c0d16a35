//! The ledger's rows, as the rules of core ask for them.

use std::sync::Arc;

use stentor_core::campaign::{Campaign, CampaignState, ProviderLedger};
use stentor_core::chunk::{ChunkState, Lane};
use stentor_core::delivery::Record;
use stentor_core::device::{ProviderKind, PushToken, Retirement};
use stentor_core::id::{AppId, CampaignId, ChunkId, DeviceId};
use stentor_core::ledger::{
    Books, Chunk, Contents, Damaged, Finish, LedgerRows, NewChunk, OrphanedBooks, Standing,
};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{LeaseTerms, StoreError};
use stentor_core::time::Timestamp;

use super::state::{CampaignRow, LeaseRow, ProviderRow, StoredChunk, Tables};

type Done<T> = Result<T, StoreError>;

impl LedgerRows for Tables {
    type Error = StoreError;
    type Chunk = Box<Chunk>;

    const ENDED_AT_ONCE_MAX_COUNT: usize = usize::MAX;

    fn is_unreadable(error: &StoreError) -> bool {
        matches!(error, StoreError::Damaged(_))
    }

    fn attempt<T>(&mut self, work: impl FnOnce(&mut Self) -> Done<T>) -> Done<Done<T>> {
        // No row here is ever damaged, so that nothing has to be taken back.
        Ok(work(self))
    }

    fn note_damage(&self, row: Damaged, error: &StoreError) {
        tracing::error!(?row, %error, "a row cannot be read");
    }

    fn chunk(&self, id: ChunkId) -> Done<Option<Box<Chunk>>> {
        let Some(kept) = self.chunks.get(&id) else { return Ok(None) };
        let campaign = &self.row(kept.facts.campaign)?.campaign;
        let (campaign_state, campaign_started) = (campaign.state, campaign.started_at.is_some());
        Ok(Some(Box::new(Chunk { campaign_state, campaign_started, ..kept.facts.clone() })))
    }

    fn devices(&self, chunk: &Box<Chunk>) -> Done<Vec<DeviceId>> {
        Ok(self.chunk_row(chunk.id)?.devices.clone())
    }

    fn contents(&self, chunk: &Box<Chunk>, now: Timestamp) -> Done<Contents> {
        let row = self.row(chunk.campaign)?;
        let devices = self.chunk_row(chunk.id)?.devices.clone();
        let (decisions, tokens) = self.look_up(row, chunk.lane.provider, &devices, now)?;
        Ok(Contents { message: Arc::clone(&row.message), devices, decisions, tokens })
    }

    fn queued(&self, id: CampaignId, only: Option<ProviderKind>, max: usize) -> Done<Vec<ChunkId>> {
        let is_meant = |chunk: &&StoredChunk| {
            chunk.is_queued() && only.is_none_or(|provider| provider == chunk.facts.lane.provider)
        };
        let chunks = self.row(id)?.chunks.iter().filter_map(|id| self.chunks.get(id));
        Ok(chunks.filter(is_meant).take(max).map(|chunk| chunk.facts.id).collect())
    }

    fn leased(&self) -> Done<Vec<ChunkId>> {
        Ok(self.leases().map(|(id, _)| id).collect())
    }

    fn is_leased_by(&self, id: ChunkId, instance: u64) -> Done<bool> {
        Ok(self.chunk_row(id)?.lease.is_some_and(|lease| lease.instance == instance))
    }

    fn leases_over(&self, now: Timestamp, max: usize) -> Done<Vec<ChunkId>> {
        let mut over: Vec<_> = self.leases().filter(|(_, lease)| lease.until <= now).collect();
        over.sort_by_key(|(id, lease)| (lease.until, *id));
        Ok(over.into_iter().map(|(id, _)| id).take(max).collect())
    }

    fn insert_chunk(&mut self, new: &NewChunk<'_>) -> Done<ChunkId> {
        self.last_chunk += 1;
        let id = ChunkId::from_raw(self.last_chunk);
        let facts = Chunk {
            id,
            campaign: new.campaign,
            lane: new.lane,
            state: ChunkState::Queued,
            attempt: new.attempt,
            ambiguous: new.ambiguous,
            epoch: 0,
            due_at: new.due_at,
            count: new.devices.len(),
            changed_at: None,
            campaign_state: CampaignState::Running,
            campaign_started: false,
        };
        let (devices, created_at) = (new.devices.to_vec(), new.created_at);
        self.row_mut(new.campaign)?.chunks.push(id);
        self.chunks.insert(id, StoredChunk { facts, devices, created_at, lease: None, records: Vec::new() });
        self.open.insert(id);
        Ok(id)
    }

    fn write_lease(&mut self, chunk: &Box<Chunk>, epoch: u32, lease: LeaseTerms) -> Done<()> {
        self.row_mut(chunk.campaign)?.campaign.started_at.get_or_insert(lease.now);
        let LeaseTerms { instance, until, now, .. } = lease;
        let kept = self.set(chunk.id, ChunkState::Leased, Some(now))?;
        // After `set`, which takes every lease away.
        (kept.facts.epoch, kept.lease) = (epoch, Some(LeaseRow { instance, until }));
        Ok(())
    }

    fn copy_lease(&mut self, id: ChunkId, epoch: u32, other: ChunkId) -> Done<()> {
        let other = self.chunk_row(other)?;
        let (lease, since) = (other.lease, other.facts.changed_at);
        let kept = self.set(id, ChunkState::Leased, since)?;
        // After `set`, which takes every lease away.
        (kept.facts.epoch, kept.lease) = (epoch, lease);
        Ok(())
    }

    fn write_queued(&mut self, id: ChunkId, due_at: Timestamp, ambiguous: bool) -> Done<()> {
        let kept = self.set(id, ChunkState::Queued, None)?;
        (kept.facts.due_at, kept.facts.ambiguous) = (due_at, ambiguous);
        Ok(())
    }

    fn write_settled(&mut self, id: ChunkId, records: &[Record], now: Timestamp) -> Done<()> {
        self.set(id, ChunkState::Settled, Some(now))?.records = records.to_vec();
        Ok(())
    }

    fn records(&self, chunk: &Box<Chunk>) -> Done<Vec<Record>> {
        Ok(self.chunk_row(chunk.id)?.records.clone())
    }

    fn write_records(&mut self, chunk: &Box<Chunk>, records: &[Record]) -> Done<()> {
        let kept = self.chunks.get_mut(&chunk.id).ok_or(StoreError::NotFound("chunk"))?;
        kept.records = records.to_vec();
        Ok(())
    }

    fn write_awaits_receipts(&mut self, _chunk: ChunkId, _awaits: bool) -> Done<()> {
        // The records say it.
        Ok(())
    }

    fn write_quarantined(&mut self, id: ChunkId, now: Timestamp) -> Done<()> {
        self.set(id, ChunkState::Quarantined, Some(now)).map(drop)
    }

    fn books(&self, id: CampaignId, provider: ProviderKind) -> Done<Books> {
        let kept = self.row(id)?.providers.get(&provider);
        Ok(kept.map_or_else(|| Books::new(provider), |at| at.books.clone()))
    }

    fn sums(&self, id: CampaignId) -> Done<Option<Vec<ProviderLedger>>> {
        Ok(Some(self.row(id)?.providers.values().map(|at| at.books.ledger().clone()).collect()))
    }

    fn save_books(&mut self, id: CampaignId, books: &Books) -> Done<()> {
        self.row_mut(id)?.at(books.ledger().provider).books = books.clone();
        Ok(())
    }

    fn complete_books(&mut self, id: CampaignId) -> Done<()> {
        self.row_mut(id)?.providers.values_mut().for_each(|at| at.books.set_complete(true));
        Ok(())
    }

    fn orphaned_books(&self, _of: OrphanedBooks) -> Done<Vec<(CampaignId, Books)>> {
        Ok(Vec::new())
    }

    fn orphaned_campaigns(&self, _expired_by: Timestamp, _max: usize) -> Done<Vec<CampaignId>> {
        Ok(Vec::new())
    }

    fn campaign(&self, app: AppId, id: CampaignId) -> Done<Option<(Campaign, bool)>> {
        let row = self.campaigns.get(&id).filter(|row| row.campaign.app == app);
        Ok(row.map(|row| (row.campaign.clone(), row.as_of.is_some())))
    }

    fn standing(&self, id: CampaignId) -> Done<Option<Standing>> {
        let row = self.row(id)?;
        Ok(Some(Standing {
            state: row.campaign.state,
            has_begun: row.as_of.is_some(),
            is_expanding: row.providers.values().any(|at| at.producing),
            has_ended: row.campaign.ended_at.is_some(),
        }))
    }

    fn expired_campaigns(
        &self,
        now: Timestamp,
        is_late: impl Fn(Timestamp, Timestamp) -> bool,
        max: usize,
    ) -> Done<Vec<CampaignId>> {
        let rows = self.campaigns.values().map(|row| &row.campaign);
        let may_send = rows.filter(|one| !one.state.is_ended() && one.expires_at <= now);
        let late = may_send.filter(|one| is_late(one.due_at, one.expires_at));
        let some = late.filter(|one| self.queued(one.id, None, 1).is_ok_and(|queued| !queued.is_empty()));
        Ok(some.map(|one| one.id).take(max).collect())
    }

    fn write_state(&mut self, id: CampaignId, state: CampaignState) -> Done<()> {
        self.row_mut(id)?.campaign.state = state;
        Ok(())
    }

    fn force_state(&mut self, id: CampaignId, state: CampaignState) -> Done<()> {
        self.write_state(id, state)
    }

    fn write_begun(&mut self, id: CampaignId, state: CampaignState, as_of: DeviceId) -> Done<()> {
        self.row_mut(id)?.as_of = Some(as_of);
        self.write_state(id, state)
    }

    fn write_end(&mut self, id: CampaignId, end: &Finish, now: Timestamp) -> Done<()> {
        let campaign = &mut self.row_mut(id)?.campaign;
        (campaign.state, campaign.ended_at) = (end.state, Some(now));
        campaign.stop = end.stop.clone().or(campaign.stop.take());
        Ok(())
    }

    fn add_producer(&mut self, _app: AppId, id: CampaignId, provider: ProviderKind) -> Done<()> {
        self.row_mut(id)?.at(provider).producing = true;
        Ok(())
    }

    fn advance_producer(&mut self, id: CampaignId, lane: Lane, cursor: DeviceId) -> Done<()> {
        self.row_mut(id)?.at(lane.provider).cursor = cursor;
        Ok(())
    }

    fn end_producers(&mut self, id: CampaignId, only: Option<ProviderKind>) -> Done<()> {
        let all = self.row_mut(id)?.providers.iter_mut();
        let meant = all.filter(|(provider, _)| only.is_none_or(|only| only == **provider));
        meant.for_each(|(_, at)| at.producing = false);
        Ok(())
    }

    fn token_since(&self, chunk: &Box<Chunk>, id: DeviceId) -> Done<Option<Timestamp>> {
        Ok(self.app(chunk.lane.app)?.devices.get(&id).map(|device| device.token_since))
    }

    fn retire(
        &mut self,
        chunk: &Box<Chunk>,
        id: DeviceId,
        reason: Reason,
        since: Timestamp,
        now: Timestamp,
    ) -> Done<()> {
        let known = self.app_mut(chunk.lane.app)?.devices.get_mut(&id);
        let known = known.filter(|device| device.retired.is_none() && device.token_since <= since);
        if let Some(device) = known {
            device.retired = Some(Retirement { at: now, reason });
        }
        Ok(())
    }

    fn move_token(
        &mut self,
        chunk: &Box<Chunk>,
        id: DeviceId,
        token: &PushToken,
        now: Timestamp,
    ) -> Done<bool> {
        Ok(self.app_mut(chunk.lane.app)?.move_token(id, token, now))
    }
}

impl Tables {
    pub(super) fn row(&self, id: CampaignId) -> Done<&CampaignRow> {
        self.campaigns.get(&id).ok_or(StoreError::NotFound("message"))
    }

    fn row_mut(&mut self, id: CampaignId) -> Done<&mut CampaignRow> {
        self.campaigns.get_mut(&id).ok_or(StoreError::NotFound("message"))
    }

    fn chunk_row(&self, id: ChunkId) -> Done<&StoredChunk> {
        self.chunks.get(&id).ok_or(StoreError::NotFound("chunk"))
    }

    /// Lists chunks that are leased.
    fn leases(&self) -> impl Iterator<Item = (ChunkId, LeaseRow)> {
        let open = self.open.iter().filter_map(|id| self.chunks.get(id));
        open.filter_map(|chunk| Some((chunk.facts.id, chunk.lease?)))
    }

    /// Sets the state of a chunk, which it has since `at`; no lease is left.
    fn set(&mut self, id: ChunkId, state: ChunkState, at: Option<Timestamp>) -> Done<&mut StoredChunk> {
        match state {
            ChunkState::Queued | ChunkState::Leased => self.open.insert(id),
            ChunkState::Settled | ChunkState::Quarantined => self.open.remove(&id),
        };
        let kept = self.chunks.get_mut(&id).ok_or(StoreError::NotFound("chunk"))?;
        (kept.facts.state, kept.facts.changed_at, kept.lease) = (state, at, None);
        Ok(kept)
    }
}

impl CampaignRow {
    /// Returns the row of a provider; one that has none yet gets an empty one.
    fn at(&mut self, provider: ProviderKind) -> &mut ProviderRow {
        self.providers.entry(provider).or_insert_with(|| ProviderRow::new(provider))
    }
}
