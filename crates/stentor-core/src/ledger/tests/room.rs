//! Rows in maps; some chunks may be made unreadable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::campaign::{Campaign, CampaignState, ProviderLedger};
use crate::chunk::{ChunkState, Lane, TokenList};
use crate::delivery::Record;
use crate::device::{ProviderKind, PushToken};
use crate::id::{AppId, CampaignId, ChunkId, DeviceId};
use crate::ledger::{
    Books, Chunk, Contents, Damaged, FIRST_EPOCH, Finish, LedgerRows, NewChunk, OrphanedBooks, Standing,
};
use crate::message::Message;
use crate::outcome::Reason;
use crate::ports::store::{LeaseTerms, SendDecision, StoreError};
use crate::time::Timestamp;

type Done<T> = Result<T, StoreError>;

/// All rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Room {
    pub(super) campaigns: BTreeMap<CampaignId, Row>,
    pub(super) chunks: BTreeMap<ChunkId, ChunkRow>,
    /// Chunks with damaged rows.
    pub(super) broken: BTreeSet<ChunkId>,
    last_chunk: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) campaign: Campaign,
    pub(super) message: Arc<Message>,
    pub(super) as_of: Option<DeviceId>,
    pub(super) producers: BTreeMap<ProviderKind, DeviceId>,
    pub(super) books: BTreeMap<ProviderKind, Books>,
    pub(super) chunks: BTreeSet<ChunkId>,
}

#[derive(Debug, Clone)]
pub(super) struct ChunkRow {
    pub(super) chunk: Chunk,
    pub(super) devices: Vec<DeviceId>,
    /// The leasing instance, and the end of its lease.
    pub(super) lease: Option<(u64, Timestamp)>,
    pub(super) records: Vec<Record>,
    pub(super) awaits_receipts: bool,
}

impl Room {
    pub(super) fn row(&self, id: CampaignId) -> Done<&Row> {
        self.campaigns.get(&id).ok_or(StoreError::NotFound("message"))
    }

    fn row_mut(&mut self, id: CampaignId) -> Done<&mut Row> {
        self.campaigns.get_mut(&id).ok_or(StoreError::NotFound("message"))
    }

    fn set(&mut self, id: ChunkId, state: ChunkState, at: Option<Timestamp>) -> Done<&mut ChunkRow> {
        let row = self.chunks.get_mut(&id).ok_or(StoreError::NotFound("chunk"))?;
        (row.chunk.state, row.chunk.changed_at, row.lease) = (state, at, None);
        Ok(row)
    }

    /// Lists the chunks of a campaign at a provider that are in a state.
    pub(super) fn those(
        &self,
        id: CampaignId,
        provider: ProviderKind,
        state: ChunkState,
    ) -> impl Iterator<Item = &ChunkRow> {
        let own = self.campaigns.get(&id).into_iter().flat_map(|row| &row.chunks);
        let own = own.filter_map(|id| self.chunks.get(id));
        own.filter(move |row| row.chunk.lane.provider == provider && row.chunk.state == state)
    }
}

impl LedgerRows for Room {
    type Error = StoreError;
    type Chunk = Box<Chunk>;

    const ENDED_AT_ONCE_MAX_COUNT: usize = 4;

    fn is_unreadable(error: &StoreError) -> bool {
        matches!(error, StoreError::Damaged(_))
    }

    fn attempt<T>(&mut self, work: impl FnOnce(&mut Self) -> Done<T>) -> Done<Done<T>> {
        let before = (!self.broken.is_empty()).then(|| self.clone());
        let done = work(self);
        match (&done, before) {
            (Ok(_), _) => {}
            (Err(error), Some(before)) if Self::is_unreadable(error) => *self = before,
            (Err(error), _) => panic!("{error}"),
        }
        Ok(done)
    }

    fn note_damage(&self, _: Damaged, _: &StoreError) {}

    fn chunk(&self, id: ChunkId) -> Done<Option<Box<Chunk>>> {
        if self.broken.contains(&id) {
            return Err(StoreError::Damaged("a chunk".to_owned()));
        }
        let Some(row) = self.chunks.get(&id) else { return Ok(None) };
        let campaign = &self.row(row.chunk.campaign)?.campaign;
        let (campaign_state, campaign_started) = (campaign.state, campaign.started_at.is_some());
        Ok(Some(Box::new(Chunk { campaign_state, campaign_started, ..row.chunk.clone() })))
    }

    fn devices(&self, chunk: &Box<Chunk>) -> Done<Vec<DeviceId>> {
        Ok(self.chunks[&chunk.id].devices.clone())
    }

    fn contents(&self, chunk: &Box<Chunk>, _: Timestamp) -> Done<Contents> {
        let (message, devices) = (Arc::clone(&self.row(chunk.campaign)?.message), self.devices(chunk)?);
        let decisions = vec![SendDecision::Gone; devices.len()];
        Ok(Contents { message, devices, decisions, tokens: TokenList::default() })
    }

    fn queued(&self, id: CampaignId, only: Option<ProviderKind>, max: usize) -> Done<Vec<ChunkId>> {
        let own = self.row(id)?.chunks.iter().filter_map(|id| self.chunks.get(id));
        let meant = own.filter(|row| {
            row.chunk.state == ChunkState::Queued
                && only.is_none_or(|provider| provider == row.chunk.lane.provider)
        });
        Ok(meant.map(|row| row.chunk.id).take(max).collect())
    }

    fn leased(&self) -> Done<Vec<ChunkId>> {
        Ok(self.chunks.values().filter(|row| row.lease.is_some()).map(|row| row.chunk.id).collect())
    }

    fn is_leased_by(&self, id: ChunkId, instance: u64) -> Done<bool> {
        Ok(self.chunks[&id].lease.is_some_and(|(by, _)| by == instance))
    }

    fn leases_over(&self, now: Timestamp, max: usize) -> Done<Vec<ChunkId>> {
        let expired = self.chunks.values().filter(|row| row.lease.is_some_and(|(_, until)| until <= now));
        Ok(expired.map(|row| row.chunk.id).take(max).collect())
    }

    fn insert_chunk(&mut self, new: &NewChunk<'_>) -> Done<ChunkId> {
        self.last_chunk += 1;
        let id = ChunkId::from_raw(self.last_chunk);
        let chunk = Chunk {
            id,
            campaign: new.campaign,
            lane: new.lane,
            state: if new.lease.is_some() { ChunkState::Leased } else { ChunkState::Queued },
            attempt: new.attempt,
            ambiguous: new.ambiguous,
            epoch: new.lease.map_or(0, |_| FIRST_EPOCH),
            due_at: new.due_at,
            count: new.devices.len(),
            changed_at: new.lease.map(|terms| terms.now),
            campaign_state: CampaignState::Running,
            campaign_started: false,
        };
        let devices = new.devices.to_vec();
        let lease = new.lease.map(|terms| (terms.instance, terms.until));
        let row = ChunkRow { chunk, devices, lease, records: Vec::new(), awaits_receipts: false };
        self.row_mut(new.campaign)?.chunks.insert(id);
        self.chunks.insert(id, row);
        Ok(id)
    }

    fn write_lease(&mut self, chunk: &Box<Chunk>, epoch: u32, lease: LeaseTerms) -> Done<()> {
        self.row_mut(chunk.campaign)?.campaign.started_at.get_or_insert(lease.now);
        let row = self.set(chunk.id, ChunkState::Leased, Some(lease.now))?;
        (row.chunk.epoch, row.lease) = (epoch, Some((lease.instance, lease.until)));
        Ok(())
    }

    fn copy_lease(&mut self, id: ChunkId, epoch: u32, other: ChunkId) -> Done<()> {
        let (lease, since) = (self.chunks[&other].lease, self.chunks[&other].chunk.changed_at);
        assert!(lease.is_some(), "the parent has its lease still");
        let row = self.set(id, ChunkState::Leased, since)?;
        (row.chunk.epoch, row.lease) = (epoch, lease);
        Ok(())
    }

    fn write_queued(&mut self, id: ChunkId, due_at: Timestamp, ambiguous: bool) -> Done<()> {
        let row = self.set(id, ChunkState::Queued, None)?;
        (row.chunk.due_at, row.chunk.ambiguous) = (due_at, ambiguous);
        Ok(())
    }

    fn write_settled(&mut self, id: ChunkId, records: &[Record], now: Timestamp) -> Done<()> {
        self.set(id, ChunkState::Settled, Some(now))?.records = records.to_vec();
        Ok(())
    }

    fn records(&self, chunk: &Box<Chunk>) -> Done<Vec<Record>> {
        Ok(self.chunks.get(&chunk.id).map(|row| row.records.clone()).unwrap_or_default())
    }

    fn write_records(&mut self, chunk: &Box<Chunk>, records: &[Record]) -> Done<()> {
        let row = self.chunks.get_mut(&chunk.id).ok_or(StoreError::NotFound("chunk"))?;
        row.records = records.to_vec();
        Ok(())
    }

    fn write_awaits_receipts(&mut self, chunk: ChunkId, awaits: bool) -> Done<()> {
        let row = self.chunks.get_mut(&chunk).ok_or(StoreError::NotFound("chunk"))?;
        row.awaits_receipts = awaits;
        Ok(())
    }

    fn write_quarantined(&mut self, id: ChunkId, now: Timestamp) -> Done<()> {
        self.broken.remove(&id);
        self.set(id, ChunkState::Quarantined, Some(now)).map(drop)
    }

    fn books(&self, id: CampaignId, provider: ProviderKind) -> Done<Books> {
        Ok(self.row(id)?.books.get(&provider).cloned().unwrap_or_else(|| Books::new(provider)))
    }

    fn sums(&self, id: CampaignId) -> Done<Option<Vec<ProviderLedger>>> {
        Ok(Some(self.row(id)?.books.values().map(|books| books.ledger().clone()).collect()))
    }

    fn save_books(&mut self, id: CampaignId, books: &Books) -> Done<()> {
        let provider = books.ledger().provider;
        self.row_mut(id)?.books.insert(provider, books.clone());
        Ok(())
    }

    fn complete_books(&mut self, id: CampaignId) -> Done<()> {
        self.row_mut(id)?.books.values_mut().for_each(|books| books.set_complete(true));
        Ok(())
    }

    fn orphaned_books(&self, of: OrphanedBooks) -> Done<Vec<(CampaignId, Books)>> {
        let (id, only) = match of {
            OrphanedBooks::OfChunk(chunk) => {
                let chunk = &self.chunks[&chunk].chunk;
                (chunk.campaign, Some(chunk.lane.provider))
            }
            OrphanedBooks::OfCampaign(id, only) => (id, only),
        };
        let row = self.row(id)?;
        let is_open = |provider| {
            let states = [ChunkState::Queued, ChunkState::Leased];
            states.iter().any(|state| self.those(id, provider, *state).next().is_some())
        };
        let meant = row.books.iter().filter(|(provider, _)| only.is_none_or(|only| only == **provider));
        let orphaned =
            meant.filter(|(provider, _)| !row.producers.contains_key(*provider) && !is_open(**provider));
        Ok(orphaned.map(|(_, books)| (id, books.clone())).collect())
    }

    fn orphaned_campaigns(&self, expired_by: Timestamp, max: usize) -> Done<Vec<CampaignId>> {
        let is_orphaned = |row: &&Row| {
            let mut open = row
                .chunks
                .iter()
                .filter_map(|id| self.chunks.get(id))
                .filter(|row| matches!(row.chunk.state, ChunkState::Queued | ChunkState::Leased));
            let is_canceled = row.campaign.state == CampaignState::Canceled;
            (is_canceled || row.campaign.expires_at <= expired_by)
                && row.campaign.ended_at.is_none()
                && row.producers.is_empty()
                && open.next().is_none()
        };
        let found = self.campaigns.values().filter(is_orphaned);
        Ok(found.map(|row| row.campaign.id).take(max).collect())
    }

    fn campaign(&self, _: AppId, id: CampaignId) -> Done<Option<(Campaign, bool)>> {
        Ok(self.campaigns.get(&id).map(|row| (row.campaign.clone(), row.as_of.is_some())))
    }

    fn standing(&self, id: CampaignId) -> Done<Option<Standing>> {
        let row = self.row(id)?;
        Ok(Some(Standing {
            state: row.campaign.state,
            has_begun: row.as_of.is_some(),
            is_expanding: !row.producers.is_empty(),
            has_ended: row.campaign.ended_at.is_some(),
        }))
    }

    fn expired_campaigns(
        &self,
        now: Timestamp,
        is_late: impl Fn(Timestamp, Timestamp) -> bool,
        max: usize,
    ) -> Done<Vec<CampaignId>> {
        let all = self.campaigns.values().map(|row| &row.campaign);
        let late = all.filter(|one| !one.state.is_ended() && one.expires_at <= now);
        let late = late.filter(|one| is_late(one.due_at, one.expires_at));
        Ok(late.map(|one| one.id).take(max).collect())
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
        assert_eq!(campaign.ended_at, None, "a campaign ends once");
        (campaign.state, campaign.ended_at, campaign.stop) = (end.state, Some(now), end.stop.clone());
        Ok(())
    }

    fn add_producer(&mut self, _: AppId, id: CampaignId, provider: ProviderKind) -> Done<()> {
        self.row_mut(id)?.producers.insert(provider, DeviceId::from_raw(0));
        Ok(())
    }

    fn advance_producer(&mut self, id: CampaignId, lane: Lane, cursor: DeviceId) -> Done<()> {
        self.row_mut(id)?.producers.insert(lane.provider, cursor);
        Ok(())
    }

    fn end_producers(&mut self, id: CampaignId, only: Option<ProviderKind>) -> Done<()> {
        self.row_mut(id)?.producers.retain(|provider, _| only.is_some_and(|only| only != *provider));
        Ok(())
    }

    fn token_since(&self, _: &Box<Chunk>, _: DeviceId) -> Done<Option<Timestamp>> {
        Ok(None)
    }

    fn retire(&mut self, _: &Box<Chunk>, _: DeviceId, _: Reason, _: Timestamp, _: Timestamp) -> Done<()> {
        Ok(())
    }

    fn move_token(&mut self, _: &Box<Chunk>, _: DeviceId, _: &PushToken, _: Timestamp) -> Done<bool> {
        Ok(true)
    }
}
