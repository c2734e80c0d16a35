//! Leasing chunks, prolonging leases and giving them back.

use std::ops::Bound;
use std::sync::Arc;

use stentor_core::campaign::CampaignState;
use stentor_core::chunk::{Ticket, TokenList};
use stentor_core::delivery::DeliveryState;
use stentor_core::id::{ChunkId, DeviceId, MessageId};
use stentor_core::message::Message;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{Fate, Lease, LeaseReply, LeasedChunk, StoreError};
use stentor_core::time::Timestamp;

use super::campaigns::{damaged, too_few};
use super::state::{AppRow, ChunkRow, LeaseRow, State};
use crate::ZERO_TTL_GRACE;

impl State {
    pub(super) fn lease(&mut self, id: ChunkId, lease: Lease) -> Result<LeaseReply, StoreError> {
        let Some(chunk) = self.chunks.get(&id).filter(|chunk| chunk.is_queued()) else {
            return Ok(LeaseReply::Void);
        };
        let row = self.campaigns.get(&chunk.campaign).ok_or_else(|| damaged("a campaign is missing"))?;
        match row.campaign.state {
            CampaignState::Running => {}
            CampaignState::Paused => return Ok(LeaseReply::Paused),
            _ => return Ok(LeaseReply::Void),
        }
        let app = self.apps.get(&row.campaign.app).ok_or_else(|| damaged("an app is missing"))?;
        let (fates, tokens) = self.look_up(app, &chunk.devices, &row.message, lease.now);
        let Self { campaigns, chunks, .. } = self;
        let chunk = chunks.get_mut(&id).ok_or_else(|| damaged("a chunk is missing"))?;
        let row = campaigns.get_mut(&chunk.campaign).ok_or_else(|| damaged("a campaign is missing"))?;
        let books = &mut row.at(chunk.lane.provider).books;
        books.lease(chunk.devices.len() as u64).map_err(too_few)?;
        let tally = books.ledger().tally;
        row.campaign.started_at.get_or_insert(lease.now);
        chunk.epoch += 1;
        chunk.lease = Some(LeaseRow { instance: lease.instance, since: lease.now, until: lease.until });
        Ok(LeaseReply::Leased(Box::new(LeasedChunk {
            id,
            epoch: chunk.epoch,
            message: Arc::clone(&row.message),
            provider: chunk.lane.provider,
            attempt: chunk.attempt,
            ambiguous: chunk.ambiguous,
            devices: chunk.devices.clone(),
            fates,
            tokens,
            tally,
        })))
    }

    pub(super) fn extend(&mut self, id: ChunkId, epoch: u32, lease: Lease) {
        let held = self.chunks.get_mut(&id).filter(|chunk| chunk.is_leased_under(epoch));
        if let Some(held) = held.and_then(|chunk| chunk.lease.as_mut())
            && held.instance == lease.instance
        {
            held.until = lease.until;
        }
    }

    pub(super) fn release(
        &mut self,
        chunks: &[(ChunkId, u32)],
        due_at: Timestamp,
    ) -> Result<Vec<Ticket>, StoreError> {
        let mut tickets = Vec::new();
        for (id, epoch) in chunks {
            if self.chunks.get(id).is_some_and(|chunk| chunk.is_leased_under(*epoch)) {
                tickets.extend(self.requeue(*id, due_at, false)?);
            }
        }
        Ok(tickets)
    }

    /// Gives up a chunk; returns whether it was there.
    pub(super) fn set_aside(
        &mut self,
        id: ChunkId,
        epoch: Option<u32>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let is_meant =
            |chunk: &&mut ChunkRow| epoch.map_or(chunk.is_queued(), |epoch| chunk.is_leased_under(epoch));
        let Some(chunk) = self.chunks.get_mut(&id).filter(is_meant) else { return Ok(false) };
        let (campaign, provider, count) = (chunk.campaign, chunk.lane.provider, chunk.devices.len() as u64);
        if chunk.lease.take().is_some() {
            chunk.ambiguous = true;
            self.row(campaign)?.at(provider).books.release(count, false).map_err(too_few)?;
        }
        self.close(id, (DeliveryState::Failed, Reason::Damaged), now)?;
        self.set_aside.insert(id);
        self.row(campaign)?.finish_if_over(now);
        Ok(true)
    }

    /// Ends a lease without a settlement: the chunk is queued again, or ends with its campaign.
    ///
    /// `unsettled` says that it may have been sent: it is ambiguous from then on and counted as a possible duplicate.
    pub(super) fn requeue(
        &mut self,
        id: ChunkId,
        due_at: Timestamp,
        unsettled: bool,
    ) -> Result<Option<Ticket>, StoreError> {
        let chunk = self.chunks.get_mut(&id).ok_or_else(|| damaged("a chunk is missing"))?;
        let row = self.campaigns.get_mut(&chunk.campaign).ok_or_else(|| damaged("a campaign is missing"))?;
        row.at(chunk.lane.provider).books.release(chunk.devices.len() as u64, unsettled).map_err(too_few)?;
        chunk.ambiguous |= unsettled;
        (chunk.lease, chunk.due_at) = (None, due_at);
        let (ticket, campaign) = (chunk.ticket(id), chunk.campaign);
        let (ending, is_running) = (row.ending(chunk.lane.provider), row.is_running());
        if let Some(ending) = ending {
            self.close(id, ending, due_at)?;
            self.row(campaign)?.finish_if_over(due_at);
        }
        Ok(is_running.then_some(ticket))
    }

    /// Lists leased chunks.
    pub(super) fn leased(&self, which: impl Fn(&LeaseRow) -> bool) -> Vec<ChunkId> {
        let is_meant = |chunk: &ChunkRow| chunk.lease.as_ref().is_some_and(&which);
        self.open.iter().filter(|id| self.chunks.get(id).is_some_and(is_meant)).copied().collect()
    }
}

impl State {
    /// Finds out about each device: gone, collapsed, or its token.
    fn look_up(
        &self,
        app: &AppRow,
        devices: &[DeviceId],
        message: &Message,
        now: Timestamp,
    ) -> (Vec<Fate>, TokenList) {
        let newest = message.spec.collapse_key.as_ref().and_then(|key| app.newest.get(key));
        let behind = (Bound::Excluded((message.place(), message.id)), Bound::Unbounded);
        let is_replaced = |id: &DeviceId| {
            let newer = newest.and_then(|of| of.get(id)).into_iter().flat_map(|ids| ids.range(behind));
            newer.into_iter().any(|(_, newer)| self.replaces(*newer, *id, now))
        };
        let mut tokens = TokenList::default();
        let mut fate = |id: &DeviceId| match app.devices.get(id).filter(|device| device.retired.is_none()) {
            None => Fate::Gone,
            Some(_) if is_replaced(id) => Fate::Collapsed,
            Some(device) => {
                tokens.push(device.registration.token.expose());
                Fate::Send
            }
        };
        (devices.iter().map(&mut fate).collect(), tokens)
    }

    /// Returns whether a message waits for a device, is on its way to it, or may have reached it.
    fn replaces(&self, newer: MessageId, device: DeviceId, now: Timestamp) -> bool {
        let Some(row) = self.campaigns.get(&newer.into()) else { return false };
        let Some(last) = self.attempts(row, device).pop() else { return false };
        match last.record.state() {
            DeliveryState::Queued => !row.message.is_over(now, ZERO_TTL_GRACE),
            DeliveryState::Sending | DeliveryState::Accepted => true,
            _ => last.record.is_ambiguous(),
        }
    }
}
