//! How a campaign begins, moves its deliveries between states, and ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use stentor_core::campaign::{Campaign, CampaignState};
use stentor_core::chunk::{Lane, Ticket};
use stentor_core::delivery::Record;
use stentor_core::device::ProviderKind;
use stentor_core::id::{CampaignId, ChunkId, DeviceId};
use stentor_core::ledger::{Ending, Finish, Standing, TooFew, ending, finish};
use stentor_core::message::Message;
use stentor_core::ports::store::StoreError;
use stentor_core::time::Timestamp;

use super::state::{CampaignRow, ChunkRow, ProviderRow, State};

/// What a chunk is made of.
pub(super) struct NewChunk {
    pub(super) provider: ProviderKind,
    pub(super) devices: Vec<DeviceId>,
    pub(super) attempt: u16,
    pub(super) ambiguous: bool,
    pub(super) due_at: Timestamp,
}

impl NewChunk {
    pub(super) fn first(provider: ProviderKind, devices: &[DeviceId], now: Timestamp) -> Self {
        Self { provider, devices: devices.to_vec(), attempt: 1, ambiguous: false, due_at: now }
    }
}

impl CampaignRow {
    /// Starts the row of a message that waits for its due time.
    pub(super) fn waiting(message: Message) -> Self {
        let campaign = Campaign {
            id: message.id.into(),
            app: message.app,
            state: CampaignState::Scheduled,
            created_at: message.created_at,
            due_at: message.due_at,
            expires_at: message.expires_at(),
            started_at: None,
            ended_at: None,
            stop: None,
        };
        Self {
            campaign,
            message: Arc::new(message),
            as_of: None,
            providers: BTreeMap::new(),
            chunks: Vec::new(),
        }
    }

    /// Returns how deliveries at a provider end that would wait; `None` while they may.
    pub(super) fn ending(&self, provider: ProviderKind) -> Option<Ending> {
        let stop = self.providers.get(&provider).and_then(|row| row.books.ledger().stop.as_ref());
        ending(self.campaign.state, stop.map(|stop| stop.reason))
    }

    pub(super) fn is_running(&self) -> bool {
        self.campaign.state == CampaignState::Running
    }

    /// Ends the campaign when it is over.
    pub(super) fn finish_if_over(&mut self, now: Timestamp) {
        let standing = Standing {
            state: self.campaign.state,
            has_begun: self.as_of.is_some(),
            is_expanding: self.providers.values().any(|row| row.producing),
            has_ended: self.campaign.ended_at.is_some(),
        };
        let books = self.providers.values().map(|row| row.books.ledger());
        if let Some(Finish { state, stop }) = finish(standing, books) {
            (self.campaign.state, self.campaign.ended_at) = (state, Some(now));
            self.campaign.stop = stop.or(self.campaign.stop.take());
        }
    }

    /// Returns the row of a provider; one that has none yet gets an empty one.
    pub(super) fn at(&mut self, provider: ProviderKind) -> &mut ProviderRow {
        self.providers.entry(provider).or_insert_with(|| ProviderRow::new(provider))
    }
}

impl State {
    /// Fixes the audience's bound and makes producers, or the chunks of a direct target.
    pub(super) fn begin(
        &mut self,
        id: CampaignId,
        chunk_max_devices: usize,
        now: Timestamp,
    ) -> Result<Vec<Ticket>, StoreError> {
        let Self { apps, campaigns, last_device, .. } = self;
        let row = campaigns.get_mut(&id).ok_or(StoreError::NotFound("message"))?;
        let app = apps.get_mut(&row.campaign.app).ok_or(StoreError::NotFound("app"))?;
        let target = &row.message.spec.target;
        row.campaign.state = CampaignState::Running;
        let mut lists: BTreeMap<ProviderKind, Vec<DeviceId>> = BTreeMap::new();
        for device in app.direct_audience(last_device, target, now) {
            lists.entry(app.device(device)?.registration.provider).or_default().push(device);
        }
        row.as_of = Some(DeviceId::from_raw(*last_device));
        if !target.is_direct() {
            ProviderKind::ALL.iter().for_each(|kind| row.at(*kind).producing = true);
            return Ok(Vec::new());
        }
        let mut tickets = Vec::new();
        for (provider, devices) in lists {
            for slice in devices.chunks(chunk_max_devices.max(1)) {
                tickets.push(self.add_first_chunk(id, &NewChunk::first(provider, slice, now), now)?);
            }
            self.row(id)?.at(provider).books.set_complete(true);
        }
        self.row(id)?.finish_if_over(now);
        Ok(tickets)
    }

    /// Keeps a chunk of devices new to the campaign, and counts them.
    pub(super) fn add_first_chunk(
        &mut self,
        id: CampaignId,
        chunk: &NewChunk,
        now: Timestamp,
    ) -> Result<Ticket, StoreError> {
        let row = self.row(id)?;
        row.at(chunk.provider).books.expand(chunk.devices.len() as u64);
        let message = Arc::clone(&row.message);
        if let (Some(key), Some(app)) = (&message.spec.collapse_key, self.apps.get_mut(&message.app)) {
            let newest = app.newest.entry(key.clone()).or_default();
            for device in &chunk.devices {
                newest.entry(*device).or_default().insert((message.place(), message.id));
            }
        }
        self.add_chunk(id, chunk, now)
    }

    /// Keeps a chunk whose devices are counted already.
    pub(super) fn add_chunk(
        &mut self,
        id: CampaignId,
        chunk: &NewChunk,
        now: Timestamp,
    ) -> Result<Ticket, StoreError> {
        self.last_chunk += 1;
        let chunk_id = ChunkId::from_raw(self.last_chunk);
        let row = self.row(id)?;
        let class = row.message.spec.target.class();
        let lane = Lane { provider: chunk.provider, app: row.campaign.app, class };
        row.chunks.push(chunk_id);
        let kept = ChunkRow {
            campaign: id,
            lane,
            devices: chunk.devices.clone(),
            attempt: chunk.attempt,
            ambiguous: chunk.ambiguous,
            epoch: 0,
            created_at: now,
            due_at: chunk.due_at,
            lease: None,
            settled_at: None,
            records: Vec::new(),
        };
        let ticket = kept.ticket(chunk_id);
        self.chunks.insert(chunk_id, kept);
        self.open.insert(chunk_id);
        Ok(ticket)
    }

    /// Ends every delivery of a queued chunk.
    pub(super) fn close(
        &mut self,
        id: ChunkId,
        (state, reason): Ending,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let chunk = self.chunks.get_mut(&id).ok_or_else(|| damaged("a chunk is missing"))?;
        let record = Record::new(state, reason, chunk.ambiguous);
        chunk.records = vec![record; chunk.devices.len()];
        chunk.settled_at = Some(now);
        self.open.remove(&id);
        let row = self.campaigns.get_mut(&chunk.campaign).ok_or_else(|| damaged("a campaign is missing"))?;
        let books = &mut row.at(chunk.lane.provider).books;
        books.end(record, chunk.devices.len() as u64).map_err(too_few)
    }

    /// Ends producers and queued chunks of a canceled or stopped campaign, at one provider or at all.
    pub(super) fn wind_up(
        &mut self,
        id: CampaignId,
        only: Option<ProviderKind>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let is_meant = |provider: ProviderKind| only.is_none_or(|only| only == provider);
        let row = self.row(id)?;
        // What was expanded is all that there will be.
        for (_, at) in row.providers.iter_mut().filter(|(provider, _)| is_meant(**provider)) {
            at.producing = false;
            at.books.set_complete(true);
        }
        let message = Arc::clone(&row.message);
        for chunk in self.row(id)?.chunks.clone() {
            let Some(kept) = self.chunks.get(&chunk).filter(|kept| is_meant(kept.lane.provider)) else {
                continue;
            };
            let (devices, provider, is_queued) = (kept.devices.clone(), kept.lane.provider, kept.is_queued());
            let ending = self.row(id)?.ending(provider);
            if let Some(ending) = ending.filter(|_| is_queued) {
                self.close(chunk, ending, now)?;
            }
            self.forget_collapse(&message, &devices);
        }
        self.row(id)?.finish_if_over(now);
        Ok(())
    }

    /// Lets a canceled or stopped message replace nothing any more.
    fn forget_collapse(&mut self, message: &Message, devices: &[DeviceId]) {
        let Some(key) = &message.spec.collapse_key else { return };
        let Some(newest) = self.apps.get_mut(&message.app).and_then(|app| app.newest.get_mut(key)) else {
            return;
        };
        for device in devices {
            newest.entry(*device).or_default().remove(&(message.place(), message.id));
        }
    }

    /// Lists tickets of a campaign's queued chunks.
    pub(super) fn tickets(&self, row: &CampaignRow) -> Vec<Ticket> {
        let chunks = row.chunks.iter().filter_map(|id| Some((*id, self.chunks.get(id)?)));
        chunks.filter(|(_, chunk)| chunk.is_queued()).map(|(id, chunk)| chunk.ticket(id)).collect()
    }

    pub(super) fn row(&mut self, id: CampaignId) -> Result<&mut CampaignRow, StoreError> {
        self.campaigns.get_mut(&id).ok_or(StoreError::NotFound("message"))
    }
}

/// That there are too few is a bug.
pub(super) fn too_few(fault: TooFew) -> StoreError {
    damaged(&fault.to_string())
}

pub(super) fn damaged(what: &str) -> StoreError {
    StoreError::Damaged(what.to_owned())
}
